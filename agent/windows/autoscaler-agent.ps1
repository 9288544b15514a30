# Makes this instance an agent of Jenkins: asks the autoscaler which node it is, connects, and asks again when the connection ends.
# Powers the instance off, which terminates it, when the autoscaler says that it is not wanted, or when nobody tells it who it is before
# the boot deadline, which waits while the autoscaler answers 503: Jenkins lets nobody register then. Once it was registered, builds may
# run here: from then on only a 410 of the autoscaler's own ends it.
# This runs as SYSTEM; builds run as the local user jenkins, who is no administrator.
#
# Needs Windows PowerShell 5.1 and the Java of your controller's agents (21 for Jenkins 2.545 and newer).
# Unproved: checked for syntax and read against the Linux script, whose tests run it; not yet run on Windows.
# Settings, from C:\autoscaler\agent.json: RegisterUrl, RegisterService, Region, BootTimeoutSeconds, Java, WorkDirectory.
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
[Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12
$settings = Get-Content -Raw -Path 'C:\autoscaler\agent.json' | ConvertFrom-Json
$run = 'C:\autoscaler\run'
$imds = 'http://169.254.169.254/latest'
$buildUser = 'jenkins'
$buildTask = 'autoscaler-builds'
$version = '3'
$sampleSeconds = 15
$sampledAt = 0.0
$window = $null
$sent = $null
$failed = ''
# The autoscaler answers an instance 60 times an hour: after the first asks, of a boot, it asks less often.
$longestPauseSeconds = 30
$firstAsks = 30
$laterPauseSeconds = 120
$lastingSeconds = 60
# How long a machine lasts after the autoscaler has answered 503, and a day in all.
$toldToWaitSeconds = 600
$waitsAtMostSeconds = 86400
$system = '*S-1-5-18:(OI)(CI)F'
$administrators = '*S-1-5-32-544:(OI)(CI)F'

function Say($text) { Write-Output "autoscaler-agent: $text" }

function Get-UptimeSeconds { ((Get-Date) - (Get-CimInstance Win32_OperatingSystem).LastBootUpTime).TotalSeconds }

# Past every proxy, which would get the role's keys or answer with its own.
function Get-Metadata($path, $headers, $method = 'GET') {
    $request = [System.Net.WebRequest]::Create("$imds/$path")
    $request.Proxy = $null
    $request.Method = $method
    $request.Timeout = 5000
    if ($method -eq 'PUT') { $request.ContentLength = 0 }
    foreach ($name in $headers.Keys) { $request.Headers.Add($name, $headers[$name]) }
    $answer = $request.GetResponse()
    try { (New-Object System.IO.StreamReader($answer.GetResponseStream())).ReadToEnd() } finally { $answer.Close() }
}

# What went wrong with a call, in the words that a person looks for; or who refused it, and in which words.
function Get-Cause($exception) {
    $web = $exception
    while ($null -ne $web -and $web -isnot [Net.WebException]) { $web = $web.InnerException }
    $said = $exception.Message
    if ($null -ne $web) { $said = "$($web.Status): $($web.Message)" }
    if ($null -ne $web -and $null -ne $web.Response) {
        $who = if (Test-Ours $web.Response.Headers) { 'the autoscaler' } else { 'AWS, or something on the way,' }
        $words = (New-Object IO.StreamReader($web.Response.GetResponseStream())).ReadToEnd()
        $said = "$who answered $([int]$web.Response.StatusCode): $words"
    }
    $said.Substring(0, [Math]::Min(250, $said.Length)) -replace '\s+', ' '
}

function Get-RoleCredentials {
    $token = Get-Metadata 'api/token' @{ 'X-aws-ec2-metadata-token-ttl-seconds' = '300' } 'PUT'
    $signed = @{ 'X-aws-ec2-metadata-token' = $token }
    $place = 'meta-data/iam/security-credentials/'
    $role = Get-Metadata $place $signed
    Get-Metadata "$place$role" $signed | ConvertFrom-Json
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

# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
function Get-SignedHeaders($credentials, [Uri]$uri, [string]$body) {
    $now = [DateTime]::UtcNow
    $stamp = $now.ToString('yyyyMMddTHHmmssZ')
    $date = $now.ToString('yyyyMMdd')
    $scope = "$date/$($settings.Region)/$($settings.RegisterService)/aws4_request"
    $names = 'host;x-amz-date;x-amz-security-token'
    $canonical = @('POST', $uri.AbsolutePath, '', "host:$($uri.Authority)", "x-amz-date:$stamp",
        "x-amz-security-token:$($credentials.Token)", '', $names, (Get-Sha256 $body)) -join "`n"
    $toSign = @('AWS4-HMAC-SHA256', $stamp, $scope, (Get-Sha256 $canonical)) -join "`n"
    $key = [Text.Encoding]::UTF8.GetBytes("AWS4$($credentials.SecretAccessKey)")
    foreach ($part in @($date, $settings.Region, $settings.RegisterService, 'aws4_request')) { $key = Get-Hmac $key $part }
    $signature = Get-Hex (Get-Hmac $key $toSign)
    @{
        'X-Amz-Date'           = $stamp
        'X-Amz-Security-Token' = $credentials.Token
        'Authorization'        = "AWS4-HMAC-SHA256 Credential=$($credentials.AccessKeyId)/$scope, SignedHeaders=$names, Signature=$signature"
    }
}

# Bytes that all adapters have sent since the machine started.
function Get-SentBytes {
    (@(Get-NetAdapterStatistics) | Measure-Object -Property SentBytes -Sum).Sum
}

# One sample of what this machine uses, each 15 s. What cannot be read is left out: nothing here may keep the agent from its work.
function Add-Sample {
    if ((Get-UptimeSeconds) - $script:sampledAt -lt $sampleSeconds) { return }
    $script:sampledAt = Get-UptimeSeconds
    try {
        $system = Get-CimInstance Win32_OperatingSystem -OperationTimeoutSec 10
        $memory = Get-CimInstance Win32_PerfFormattedData_PerfOS_Memory -OperationTimeoutSec 10
        $processors = Get-CimInstance Win32_PerfFormattedData_PerfOS_Processor -Filter "Name='_Total'" -OperationTimeoutSec 10
        $disk = Get-CimInstance Win32_LogicalDisk -Filter "DeviceID='C:'" -OperationTimeoutSec 10
        $pages = (@(Get-CimInstance Win32_PageFileUsage -OperationTimeoutSec 10) | Measure-Object -Property CurrentUsage -Sum).Sum
        $sample = @{
            available = [double]$memory.AvailableBytes
            total = 1024.0 * $system.TotalVisibleMemorySize
            cpu = $processors.PercentProcessorTime / 100.0 * [Environment]::ProcessorCount
            swap = 1MB * [double]$pages
            free = [double]$disk.FreeSpace
            size = [double]$disk.Size
            sent = Get-SentBytes
        }
    } catch {
        return
    }
    if ($null -eq $script:window) { $script:window = @{ began = $script:sampledAt; samples = @() } }
    $script:window.samples += , $sample
    # Where nobody answers, the oldest go: a report is about the last hour at the most.
    $script:window.samples = @($script:window.samples | Select-Object -Last 240)
}

# What was sampled since somebody got the last report; $null before the first sample.
function Get-Telemetry {
    if ($null -eq $script:window) { return $null }
    $samples = @($script:window.samples)
    $last = $samples[-1]
    $available = $samples | ForEach-Object { $_.available } | Measure-Object -Minimum
    $cpu = $samples | ForEach-Object { $_.cpu } | Measure-Object -Average
    $before = if ($null -eq $script:sent) { $samples[0].sent } else { $script:sent }
    @{
        seconds = [Math]::Round((Get-UptimeSeconds) - $script:window.began, 1)
        cores = [Environment]::ProcessorCount
        memory_total = $last.total
        memory_available = $last.available
        memory_least = $available.Minimum
        swap_used = ($samples | ForEach-Object { $_.swap } | Measure-Object -Maximum).Maximum
        cpu_mean = [Math]::Round($cpu.Average, 2)
        sent = [Math]::Max(0, $last.sent - $before)
        root_free = $last.free
        root_total = $last.size
        work_free = $last.free
        work_total = $last.size
    }
}

# Whether an answer is the autoscaler's own. A 403 of AWS or of a proxy on the way says nothing about this instance.
function Test-Ours($headers) { $headers['X-Autoscaler'] -eq 'registration' }

# Status and body of the answer, and whether it is the autoscaler's own; status 0 when there was none.
function Get-Identity {
    $told = @{ Status = 0; Ours = $false; Body = $null; Problem = 'an answer that names no node' }
    try {
        $uri = [Uri]$settings.RegisterUrl
        $bootedAt = (Get-CimInstance Win32_OperatingSystem).LastBootUpTime.ToUniversalTime().ToString('o')
        Add-Sample
        $said = @{ agent_version = $version; boot_id = $bootedAt }
        $telemetry = Get-Telemetry
        if ($null -ne $telemetry) { $said.telemetry = $telemetry }
        if ($script:failed) { $said.problem = $script:failed }
        $body = $said | ConvertTo-Json -Compress -Depth 4
        try { $credentials = Get-RoleCredentials } catch { throw "the instance metadata service: $(Get-Cause $_.Exception): is it off?" }
        $headers = Get-SignedHeaders $credentials $uri $body
        $answer = Invoke-WebRequest -UseBasicParsing -Method Post -Uri $uri -Headers $headers -Body $body -ContentType 'application/json' -TimeoutSec 20
        if ($null -ne $script:window) {
            $script:sent = @($script:window.samples)[-1].sent
            $script:window = $null
        }
        $told.Body = $answer.Content | ConvertFrom-Json
        $told.Status = [int]$answer.StatusCode
    } catch {
        $told.Problem = Get-Cause $_.Exception
        $answer = if ($_.Exception -is [Net.WebException]) { $_.Exception.Response }
        if ($null -ne $answer) { $told.Status = [int]$answer.StatusCode; $told.Ours = Test-Ours $answer.Headers }
    }
    $told
}

function Stop-Instance($why) {
    Say "powering off: $why"
    Remove-Item -Recurse -Force -ErrorAction SilentlyContinue -Path $run
    Stop-Computer -Force
    exit 0
}

# Gives the build user a new password, which is kept nowhere but in its task, and returns it.
function Reset-BuildUser {
    $bytes = New-Object byte[] 32
    [Security.Cryptography.RandomNumberGenerator]::Create().GetBytes($bytes)
    $password = 'aA1!' + [Convert]::ToBase64String($bytes)
    $secure = ConvertTo-SecureString -AsPlainText -Force -String $password
    if (Get-LocalUser -Name $buildUser -ErrorAction SilentlyContinue) {
        Set-LocalUser -Name $buildUser -Password $secure
    } else {
        New-LocalUser -Name $buildUser -Password $secure -PasswordNeverExpires -UserMayNotChangePassword | Out-Null
        # Users; and Performance Log Users, who may run as a task without being administrators.
        foreach ($group in 'S-1-5-32-545', 'S-1-5-32-559') { Add-LocalGroupMember -SID $group -Member $buildUser }
    }
    $password
}

function Test-BuildTaskRunning {
    $task = Get-ScheduledTask -TaskName $buildTask -ErrorAction SilentlyContinue
    ($null -ne $task) -and ($task.State -in 'Running', 'Queued')
}

# Whether the autoscaler wants this machine to be somebody else by now. Nothing but a good answer says so: a build may run here.
function Test-WantedElsewhere($connection) {
    $identity = Get-Identity
    if ($identity.Status -ne 200 -or $null -eq $identity.Body.connections) { return $false }
    $wanted = $identity.Body.connections[0]
    # Not its address: that may change in the fleet file while a build runs, and is the same controller.
    ($wanted.controller -ne $connection.controller) -or ($wanted.name -ne $connection.name)
}

# Runs Java as the build user, and returns its exit code when it has ended, or was ended since another controller wants this machine.
# A task: SYSTEM cannot start a process as somebody else by itself.
function Invoke-AsBuildUser([string]$arguments, $connection, [double]$pollSeconds) {
    $password = Reset-BuildUser
    icacls $settings.WorkDirectory /grant "${buildUser}:(OI)(CI)M" | Out-Null
    foreach ($file in 'agent.jar', 'secret') { icacls "$run\$file" /grant "${buildUser}:R" | Out-Null }
    $action = New-ScheduledTaskAction -Execute $settings.Java -Argument $arguments -WorkingDirectory $settings.WorkDirectory
    $rules = New-ScheduledTaskSettingsSet -ExecutionTimeLimit 0 -Priority 4
    Register-ScheduledTask -TaskName $buildTask -Action $action -Settings $rules -User $buildUser -Password $password -RunLevel Limited -Force | Out-Null
    Start-ScheduledTask -TaskName $buildTask
    if ($pollSeconds -le 0) { $pollSeconds = [double]::MaxValue }
    $asked = Get-UptimeSeconds
    do {
        Start-Sleep -Seconds 2
        Add-Sample
        if ((Get-UptimeSeconds) - $asked -ge $pollSeconds) {
            $asked = Get-UptimeSeconds
            if (Test-WantedElsewhere $connection) { Stop-BuildTask }
        }
    } while (Test-BuildTaskRunning)
    (Get-ScheduledTaskInfo -TaskName $buildTask).LastTaskResult
}

# Ends what the build user runs, so that the next controller finds nothing of the last one's.
function Stop-BuildTask {
    Say 'another controller wants this machine'
    Stop-ScheduledTask -TaskName $buildTask
    Get-Process -IncludeUserName | Where-Object { $_.UserName -like "*\$buildUser" } | Stop-Process -Force -ErrorAction SilentlyContinue
    Remove-Item -Recurse -Force -ErrorAction SilentlyContinue -Path "$($settings.WorkDirectory)\*"
}

# Connects as the answer says, and returns when the connection is over for good.
function Connect-Agent($told) {
    $connection = $told.connections[0]
    try {
        Invoke-WebRequest -UseBasicParsing -Uri "$($connection.url.TrimEnd('/'))/jnlpJars/agent.jar" -OutFile "$run\agent.jar" -TimeoutSec 120
    } catch {
        $script:failed = "agent.jar cannot be fetched from $($connection.url): $(Get-Cause $_.Exception)"
        Say $script:failed
        return
    }
    # The secret stands in a file that only the system and the build user may read, never in an argument.
    [IO.File]::WriteAllText("$run\secret", $connection.secret)
    Say "connecting to $($connection.url) as $($connection.name)"
    $who = "-url `"$($connection.url)`" -name `"$($connection.name)`" -secret `"@$run\secret`""
    $status = Invoke-AsBuildUser "-jar `"$run\agent.jar`" $who -webSocket -workDir `"$($settings.WorkDirectory)`"" $connection $told.poll_seconds
    $script:failed = "Java ended with status $status"
    Say "the agent ended with status $status"
}

# Waits, at each start of the machine, for Docker where it starts with the machine, and for the operator's hook, if there is one:
# C:\autoscaler\ready.ps1 holds the agent back while it exits with another status than 0.
function Wait-UntilReady {
    $patience = (Get-UptimeSeconds) + $settings.BootTimeoutSeconds / 2
    while ((Get-UptimeSeconds) -lt $patience) {
        $docker = Get-Service -Name 'docker' -ErrorAction SilentlyContinue
        if ($null -eq $docker -or $docker.StartType -ne 'Automatic' -or $docker.Status -eq 'Running') { break }
        Start-Sleep -Seconds 1
    }
    while (Test-Path -Path 'C:\autoscaler\ready.ps1') {
        & powershell.exe -NoProfile -ExecutionPolicy Bypass -File 'C:\autoscaler\ready.ps1'
        if ($LASTEXITCODE -eq 0) { break }
        Say "C:\autoscaler\ready.ps1 holds this agent back ($LASTEXITCODE)"
        if ((Get-UptimeSeconds) -ge $settings.BootTimeoutSeconds) {
            Stop-Instance "not ready for builds within $($settings.BootTimeoutSeconds) s"
        }
        Start-Sleep -Seconds 5
    }
}

New-Item -ItemType Directory -Force -Path $run, $settings.WorkDirectory | Out-Null
icacls $run /inheritance:r /grant:r $system $administrators | Out-Null
$ErrorActionPreference = 'Continue'
# Started again by itself: the builds of the task that it started before go on.
while (Test-BuildTaskRunning) { Start-Sleep -Seconds 2 }
$registered = $false
$asked = 0
$pause = 2
# The autoscaler ends what is late, and gives twice the time where all boots are: this is for the case that nobody ends it.
$bootSeconds = 2 * $settings.BootTimeoutSeconds
$deadline = $bootSeconds
Wait-UntilReady
while ($true) {
    $identity = Get-Identity
    $asked += 1
    $connecting = Get-UptimeSeconds
    if ($identity.Status -eq 200 -and $null -ne $identity.Body.connections) {
        $registered = $true
        Connect-Agent $identity.Body
    } elseif ($identity.Ours -and ($identity.Status -eq 410 -or ($identity.Status -eq 403 -and -not $registered))) {
        Stop-Instance "it is not wanted: $($identity.Problem)"
    } else {
        if ($identity.Ours -and $identity.Status -eq 503) {
            $deadline = [Math]::Max($deadline, [Math]::Min((Get-UptimeSeconds) + $toldToWaitSeconds, $waitsAtMostSeconds))
        }
        Say "no identity yet: $($identity.Problem); asking again in $pause s"
    }
    if (-not $registered -and (Get-UptimeSeconds) -ge $deadline) {
        Stop-Instance "not registered within $bootSeconds s; $($identity.Problem)"
    }
    if ((Get-UptimeSeconds) - $connecting -ge $lastingSeconds) {
        $asked = 0
        $pause = 2
    }
    Start-Sleep -Seconds $pause
    $longest = if ($asked -ge $firstAsks) { $laterPauseSeconds } else { $longestPauseSeconds }
    $pause = [Math]::Min($pause * 2, $longest)
}
