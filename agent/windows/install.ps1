# Installs the agent as a task that starts with the machine, so that a reboot brings it back.
# The user data says $registerUrl, $region, $bootTimeoutSeconds.
New-Item -ItemType Directory -Force -Path 'C:\autoscaler' | Out-Null
# What SYSTEM runs stands here: in a folder as C:\ makes it, whoever is logged on could change it, builds among them.
icacls 'C:\autoscaler' /inheritance:r /grant:r '*S-1-5-18:(OI)(CI)F' '*S-1-5-32-544:(OI)(CI)F' | Out-Null
@{
    RegisterUrl = $registerUrl
    Region = $region
    BootTimeoutSeconds = $bootTimeoutSeconds
    Java = 'java'
    WorkDirectory = 'C:\jenkins'
} | ConvertTo-Json | Set-Content -Encoding UTF8 -Path 'C:\autoscaler\agent.json'
@'
@include autoscaler-agent.ps1
'@ | Set-Content -Encoding UTF8 -Path 'C:\autoscaler\autoscaler-agent.ps1'
$action = New-ScheduledTaskAction -Execute 'powershell.exe' -Argument '-NoProfile -ExecutionPolicy Bypass -File C:\autoscaler\autoscaler-agent.ps1'
$trigger = New-ScheduledTaskTrigger -AtStartup
$rules = New-ScheduledTaskSettingsSet -ExecutionTimeLimit 0 -RestartCount 999 -RestartInterval (New-TimeSpan -Minutes 1)
Register-ScheduledTask -TaskName autoscaler-agent -Action $action -Trigger $trigger -Settings $rules -User SYSTEM -RunLevel Highest -Force
Start-ScheduledTask -TaskName autoscaler-agent
