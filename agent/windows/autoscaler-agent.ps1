# Makes this instance an agent of Jenkins: asks the autoscaler which node it is, connects, and asks again when the connection ends.
# Powers the instance off, which terminates it, when it is not wanted, or when nobody tells it who it is before the boot deadline.
#
# Needs Windows PowerShell 5.1 and the Java of your controller's agents (17 for Jenkins 2.504).
# Unproved: checked for syntax and read against the Linux script, whose tests run it; not yet run on Windows.
# Settings, from C:\autoscaler\agent.json: RegisterUrl, Region, BootTimeoutSeconds, Java, WorkDirectory.
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
[Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12
$settings = Get-Content -Raw -Path 'C:\autoscaler\agent.json' | ConvertFrom-Json
$run = 'C:\autoscaler\run'
$imds = 'http://169.254.169.254/latest'
$longestPauseSeconds = 30

function Say($text) { Write-Output "autoscaler-agent: $text" }

function Get-UptimeSeconds { ((Get-Date) - (Get-CimInstance Win32_OperatingSystem).LastBootUpTime).TotalSeconds }

function Get-RoleCredentials {
    $lifetime = @{ 'X-aws-ec2-metadata-token-ttl-seconds' = '300' }
    $token = Invoke-RestMethod -Method Put -Uri "$imds/api/token" -Headers $lifetime -TimeoutSec 5
    $signed = @{ 'X-aws-ec2-metadata-token' = $token }
    $place = "$imds/meta-data/iam/security-credentials/"
    $role = Invoke-RestMethod -Uri $place -Headers $signed -TimeoutSec 5
    Invoke-RestMethod -Uri "$place$role" -Headers $signed -TimeoutSec 5
}

function Get-Hmac([byte[]]$key, [string]$text) {
    $hmac = New-Object System.Security.Cryptography.HMACSHA256
    $hmac.Key = $key
    , $hmac.ComputeHash([Text.Encoding]::UTF8.GetBytes($text))
}

function Get-Hex([byte[]]$bytes) { -join ($bytes | ForEach-Object { $_.ToString('x2') }) }

function Get-Sha256([string]$text) {
    Get-Hex ([System.Security.Cryptography.SHA256]::Create().ComputeHash([Text.Encoding]::UTF8.GetBytes($text)))
}

# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html, for a POST without a body.
function Get-SignedHeaders($credentials, [Uri]$uri) {
    $now = [DateTime]::UtcNow
    $stamp = $now.ToString('yyyyMMddTHHmmssZ')
    $date = $now.ToString('yyyyMMdd')
    $scope = "$date/$($settings.Region)/lambda/aws4_request"
    $names = 'host;x-amz-date;x-amz-security-token'
    $canonical = @('POST', $uri.AbsolutePath, '', "host:$($uri.Authority)", "x-amz-date:$stamp",
        "x-amz-security-token:$($credentials.Token)", '', $names, (Get-Sha256 '')) -join "`n"
    $toSign = @('AWS4-HMAC-SHA256', $stamp, $scope, (Get-Sha256 $canonical)) -join "`n"
    $key = [Text.Encoding]::UTF8.GetBytes("AWS4$($credentials.SecretAccessKey)")
    foreach ($part in @($date, $settings.Region, 'lambda', 'aws4_request')) { $key = Get-Hmac $key $part }
    $signature = Get-Hex (Get-Hmac $key $toSign)
    @{
        'X-Amz-Date'           = $stamp
        'X-Amz-Security-Token' = $credentials.Token
        'Authorization'        = "AWS4-HMAC-SHA256 Credential=$($credentials.AccessKeyId)/$scope, SignedHeaders=$names, Signature=$signature"
    }
}

# Status and body of the answer; status 0 when there was none.
function Get-Identity {
    try {
        $uri = [Uri]$settings.RegisterUrl
        $headers = Get-SignedHeaders (Get-RoleCredentials) $uri
        $answer = Invoke-WebRequest -UseBasicParsing -Method Post -Uri $uri -Headers $headers -TimeoutSec 20
        return @{ Status = [int]$answer.StatusCode; Body = ($answer.Content | ConvertFrom-Json) }
    } catch [System.Net.WebException] {
        if ($null -eq $_.Exception.Response) { return @{ Status = 0; Body = $null } }
        return @{ Status = [int]$_.Exception.Response.StatusCode; Body = $null }
    } catch {
        return @{ Status = 0; Body = $null }
    }
}

function Stop-Instance($why) {
    Say "powering off: $why"
    Remove-Item -Recurse -Force -ErrorAction SilentlyContinue -Path $run
    Stop-Computer -Force
    exit 0
}

# Connects as the answer says, and returns when the connection is over for good.
function Connect-Agent($told) {
    $connection = $told.connections[0]
    try {
        Invoke-WebRequest -UseBasicParsing -Uri "$($connection.url.TrimEnd('/'))/jnlpJars/agent.jar" -OutFile "$run\agent.jar" -TimeoutSec 120
    } catch {
        Say "agent.jar cannot be fetched from $($connection.url)"
        return
    }
    # The secret stands in a file in a folder that only the system may read, never in an argument.
    [IO.File]::WriteAllText("$run\secret", $connection.secret)
    Say "connecting to $($connection.url) as $($connection.name)"
    & $settings.Java -jar "$run\agent.jar" -url $connection.url -name $connection.name -secret "@$run\secret" -webSocket -workDir $settings.WorkDirectory
    Say "the agent ended with status $LASTEXITCODE"
}

New-Item -ItemType Directory -Force -Path $run, $settings.WorkDirectory | Out-Null
icacls $run /inheritance:r /grant:r '*S-1-5-18:(OI)(CI)F' '*S-1-5-32-544:(OI)(CI)F' | Out-Null
$ErrorActionPreference = 'Continue'
$registered = $false
$pause = 2
while ($true) {
    $identity = Get-Identity
    if ($identity.Status -eq 200) {
        $registered = $true
        $pause = 2
        Connect-Agent $identity.Body
    } elseif ($identity.Status -in 403, 410) {
        Stop-Instance "it is not wanted ($($identity.Status))"
    } else {
        Say "no identity yet ($($identity.Status)); asking again in $pause s"
    }
    if (-not $registered -and (Get-UptimeSeconds) -ge $settings.BootTimeoutSeconds) {
        Stop-Instance "not registered within $($settings.BootTimeoutSeconds) s"
    }
    Start-Sleep -Seconds $pause
    if ($identity.Status -ne 200) { $pause = [Math]::Min($pause * 2, $longestPauseSeconds) }
}
