package shell_test

import (
	"testing"

	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
)

func TestPowerShell(t *testing.T) {
	t.Parallel()
	expectReadings(t, shell.PowerShell, []spelling{
		{"", "-"},
		{"# ssh web01 reboot", "-"},
		{"<# ssh web01 reboot #>", "-"},
		{"'ssh web01 reboot'", "-"},
		{"'if'", "-"},
		{`Write-Host "ssh web01 reboot"`, "-"},
		{"Get-ChildItem -Recurse | Select-Object Name", "-"},
		{"ls; cat x | Select-String ssh", "-"},
		{"Get-Process | Where-Object { $_.CPU -gt 10 }", "-"},
		{"$x = 5; $y = 'ssh web01'; $x + 1", "-"},
		{"$x = Get-Date", "-"},
		{"ls 2>$null", "-"},
		{"[math]::Round(1.5)", "-"},
		{"git push origin main", "here!"},
		{"Remove-Item -Recurse build", "here!"},
		{"ls > x.txt", "here!"},
		{"Set-Content x 'ssh web01 reboot'", "here!"},
		{"Restart-Service sshd", "here!"},
		{"if (Test-Path x) { rm x } else { Write-Host no }", "here!"},
		{"& 'C:/Program Files/tool.exe' x", "here!"},
		{"npm test", "here!"},
		{"@'\nssh web01 reboot\n'@ | Set-Content x", "here!"},

		{"Invoke-Command -ComputerName web01 -ScriptBlock { Restart-Service x }", "web01!"},
		{"Invoke-Command -ComputerName web01 -ScriptBlock { Get-Process }", "web01"},
		{"Stop-Computer web01", "web01!"},
		{"Restart-Computer -Force", "here!"},
		{"New-CimSession web01", "web01!"},
		{"icm web01 { Stop-Process -Name x }", "web01!"},
		{"INVOKE-COMMAND -comp web01 { rm x }", "web01!"},
		{"Invoke-Command -ComputerName web01 { Get-Service }", "web01"},
		{"Invoke-Command -ComputerName web01, 'db01' { Get-Service; Restart-Service x }", "web01! db01!"},
		{"Invoke-Command -Cn web01 { ssh db01 reboot }", "web01 db01!"},
		{"Invoke-Command -ComputerName web01 -FilePath x.ps1", "web01!"},
		{"Invoke-Command -ComputerName:web01 -ScriptBlock $sb", "web01!"},
		{"Invoke-Command { rm x }", "here!"},
		{"Invoke-Command -ComputerName localhost { rm x }", "here!"},
		{"Invoke-Command -ComputerName web01 { & $x }", "web01!"},
		{"Invoke-Command -ComputerName web01 { [IO.File]::Delete('x') }", "web01!"},
		{"Invoke-Command -ComputerName web01 { ls > x }", "web01!"},
		{"Enter-PSSession -ComputerName web01", "web01!"},
		{"etsn web01", "web01!"},
		{"$s = New-PSSession web01", "web01!"},
		{"Restart-Computer -ComputerName web01 -Force", "web01!"},
		{"Get-Service -ComputerName web01", "web01"},
		{"Stop-VM -Name web01 -Force", "web01!"},
		{"Stop-VM web01,db01", "web01! db01!"},
		{"Set-VM -VM web01 -MemoryGB 4", "web01!"},
		{"Set-VM -Name web02 -VM web01", "web01!"},
		{"New-HardDisk -VM web01 -Name data", "web01!"},
		{"Get-VM web01", "-"},
		{"Checkpoint-VM web01", "-"},
		{"winrs -r:web01 reboot", "web01!"},
		{"ssh root@web01 reboot", "web01!"},
		{"ssh web01 uptime", "web01"},
		{"ssh.exe web01 reboot", "web01!"},
		{"& 'ssh' web01 reboot", "web01!"},
		{`& "C:\Windows\System32\OpenSSH\ssh.exe" web01 reboot`, "web01!"},
		{"$(ssh web01 reboot)", "web01!"},
		{`"$(ssh web01 reboot)"`, "web01!"},
		{"@(ssh web01 reboot)", "web01!"},
		{"(ssh web01 reboot)", "web01!"},
		{"if ($true) { ssh web01 reboot }", "web01!"},
		{"if ($true) { } ssh web01 reboot", "web01!"},
		{"foreach ($i in 1..3) { ssh web01 reboot }", "web01!"},
		{"function f { ssh web01 reboot }", "web01!"},
		{"1..3 | % { ssh web01 reboot }", "web01!"},
		{"s`sh web01 reboot", "web01!"},
		{"ssh `\n web01 reboot", "web01!"},
		{"ls && ssh web01 reboot", "web01!"},
		{"ls || ssh web01 reboot", "web01!"},
		{"$x = ssh web01 reboot", "web01!"},
		{"iex 'ssh web01 reboot'", "web01!"},
		{"Invoke-Expression -Command \"ssh web01 reboot\"", "web01!"},
		{"Start-Process ssh -ArgumentList 'web01','reboot'", "web01!"},
		{"saps ssh 'web01 reboot'", "web01!"},
		{"powershell -Command ssh web01 reboot", "web01!"},
		{"bash -c 'ssh web01 reboot'", "web01!"},
		{"cmd /c ssh web01 reboot", "web01!"},
		{"try { ssh web01 reboot } catch { }", "web01!"},
		{"ls @{a = $(ssh web01 reboot)}", "web01! here!"},

		{"Invoke-Command -ComputerName $h { rm x }", "here! ?"},
		{"Invoke-Command -Session $s { ls }", "?"},
		{"Invoke-Command -ComputerName (gc hosts) { ls }", "?"},
		{"& $x", "here! ?"},
		{". $x", "here! ?"},
		{"iex $x", "here! ?"},
		{"iwr https://x | iex", "here! ?"},
		{"$c.Invoke()", "here! ?"},
		{"[Diagnostics.Process]::Start('ssh','web01')", "here! ?"},
		{"powershell -enc abc", "here! ?"},
		{"ssh $h reboot", "?"},
		{"Get-VM | Stop-VM", "?"},
		{"Restore-VMSnapshot -VMName web01 x", "?"},
		{"Stop-AzVM -Name web01", "?"},
		{"Invoke-RestMethod -Method Delete https://pve/x", "?"},
		{"Copy-Item x -ToSession $s", "here! ?"},
		{"Copy-Item x -Destination \\\\web01\\c$", "here! ?"},
		{"cmd /c \"shutdown /m \\\\web01\"", "here! ?"},
		{"curl -Method Post https://pve/x", "?"},
		{"Register-ScheduledTask -Action (New-ScheduledTaskAction -Execute ssh -Argument 'web01 reboot')", "here! ?"},
		{"powershell -Command -", "here! ?"},
		{"ssh @h reboot", "?"},
		{"icm @p { rm x }", "here! ?"},
		{"Restart-Service @p", "here! ?"},
		{"$env:DOCKER_HOST = 'ssh://web01'; docker rm x", "here! ?"},
		{"${env:ZVM_URL} = 'x'", "?"},
		{"$env:FOO = 'x'", "-"},
		{"Copy-Item x \\\\web01\\c$\\x", "here! ?"},
		{"'unfinished", "?"},
		{"{ ssh web01 reboot", "web01! ?"},
		{"ssh web01 reboot; )", "web01! ?"},
		{"start-process $x", "here! ?"},
		{"Stop-VM $x", "?"},
	})
}

// FuzzPowerShell checks that a command with a machine is seen whatever stands in front of it.
func FuzzPowerShell(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	for _, seed := range []string{"'a' + \"b $(c) `\" d\"", "@\"\n$x $(y)\n\"@ | z", "& { a } ; . b", "a -b:c, d @e > $null 2>&1", "<# a #> b # c", "function f { a } b", "$x = { a }", "[a]::b(c)", "icm -com a -comp b { rm x }"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		alone := shell.Read(line, shell.PowerShell)
		if alone.Unresolved != "" {
			return // a quote may be open, and what follows stand in it
		}
		// The empty line ends one that a backtick would continue.
		whole := line + "\n\nssh web01 rm -rf /"
		r := shell.Read(whole, shell.PowerShell)
		if r.Unresolved == "" && laxer(r, shell.Reading{Machines: []shell.Machine{{Name: "web01", Changed: true}}}) != "" {
			t.Errorf("%q is read as %q, want web01 or something unresolved", whole, short(r))
		}
		if what := laxer(r, alone); what != "" && r.Unresolved == "" {
			t.Errorf("%q lacks %s of its first command", whole, what)
		}
	})
}
