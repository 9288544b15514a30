# Installs the agent as a task that starts with the machine, so that a reboot brings it back.
# The user data says $registerUrl, $registerService, $region, $bootTimeoutSeconds, $javaVersion.
# Unproved: checked for syntax, not yet run on Windows.
function Save-Settings($java) {
    @{
        RegisterUrl = $registerUrl
        RegisterService = $registerService
        Region = $region
        BootTimeoutSeconds = $bootTimeoutSeconds
        Java = $java
        WorkDirectory = 'C:\jenkins'
    } | ConvertTo-Json | Set-Content -Encoding UTF8 -Path 'C:\autoscaler\agent.json'
}

# The major version of a java; 0 where there is none.
function Get-JavaVersion($java) {
    try { $said = & $java -version 2>&1 | Out-String } catch { return 0 }
    if ($said -match 'version "(\d+)') { return [int]$Matches[1] }
    return 0
}

# Amazon's images bring no Java: the same Corretto as on Linux, by Amazon's own signature. Returns the path of its java.
function Install-Java {
    [Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12
    $ProgressPreference = 'SilentlyContinue'
    $package = 'C:\autoscaler\java.msi'
    Invoke-WebRequest -UseBasicParsing -Uri "https://corretto.aws/downloads/latest/amazon-corretto-$javaVersion-x64-windows-jdk.msi" -OutFile $package
    $signature = Get-AuthenticodeSignature -FilePath $package
    if ($signature.Status -ne 'Valid' -or $signature.SignerCertificate.Subject -notmatch 'Amazon') { throw "$package is not signed by Amazon" }
    Start-Process -Wait -FilePath 'msiexec.exe' -ArgumentList '/i', $package, '/quiet', '/norestart'
    Remove-Item -Path $package
    Get-ChildItem -Path 'C:\Program Files\Amazon Corretto\*\bin\java.exe' | Sort-Object -Property FullName | Select-Object -Last 1 -ExpandProperty FullName
}

New-Item -ItemType Directory -Force -Path 'C:\autoscaler' | Out-Null
# What SYSTEM runs stands here: in a folder as C:\ makes it, whoever is logged on could change it, builds among them.
icacls 'C:\autoscaler' /inheritance:r /grant:r '*S-1-5-18:(OI)(CI)F' '*S-1-5-32-544:(OI)(CI)F' | Out-Null
Save-Settings 'java'
@'
@include autoscaler-agent.ps1
'@ | Set-Content -Encoding UTF8 -Path 'C:\autoscaler\autoscaler-agent.ps1'
$action = New-ScheduledTaskAction -Execute 'powershell.exe' -Argument '-NoProfile -ExecutionPolicy Bypass -File C:\autoscaler\autoscaler-agent.ps1'
$trigger = New-ScheduledTaskTrigger -AtStartup
$rules = New-ScheduledTaskSettingsSet -ExecutionTimeLimit 0 -RestartCount 999 -RestartInterval (New-TimeSpan -Minutes 1)
Register-ScheduledTask -TaskName autoscaler-agent -Action $action -Trigger $trigger -Settings $rules -User SYSTEM -RunLevel Highest -Force
if ((Get-JavaVersion 'java') -lt $javaVersion) {
    try { Save-Settings (Install-Java) } catch { Write-Output "autoscaler-agent: Java $javaVersion cannot be installed: $_" }
}
Start-ScheduledTask -TaskName autoscaler-agent
