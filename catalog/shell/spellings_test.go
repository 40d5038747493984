package shell_test

import (
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
)

// short writes a reading as one word for each machine, with "!" if it is changed, "here!" for the agent's own, and "?"
// if something is unresolved. A line that does none of these is "-".
func short(r shell.Reading) string {
	var words []string
	for _, m := range r.Machines {
		if m.Changed {
			m.Name += "!"
		}
		words = append(words, m.Name)
	}
	if r.ChangesLocal {
		words = append(words, "here!")
	}
	if r.Unresolved != "" {
		words = append(words, "?")
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}

type spelling struct{ line, want string }

func expectReadings(t *testing.T, dialect shell.Dialect, spellings []spelling) {
	t.Helper()
	for _, s := range spellings {
		if got := short(shell.Read(s.line, dialect)); got != s.want {
			t.Errorf("%s\nis read as %q, want %q (%s)", s.line, got, s.want, shell.Read(s.line, dialect).Unresolved)
		}
	}
}

func TestEverySpellingOfOneCommand(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"ssh web01 reboot", "/usr/bin/ssh web01 reboot", "ssh.exe web01 reboot", "SSH.EXE web01 reboot", `"ssh" web01 reboot`, `s"s"h web01 reboot`,
		`\ssh web01 reboot`, "s''sh web01 reboot", "'/c/Windows/System32/OpenSSH/ssh.exe' web01 reboot", `ssh "web01" 'reboot'`, "ssh web01 -- reboot",
		"env A=b ssh web01 reboot", "A=b ssh web01 reboot", "env -i PATH=/bin ssh web01 reboot", "env -u X ssh web01 reboot", "env -S 'ssh web01 reboot'",
		"sh -c 'ssh web01 reboot'", `bash -lc "ssh web01 reboot"`, "bash -x -c 'ssh web01 reboot'", "bash -o pipefail -ec 'ssh web01 reboot'",
		"true && ssh web01 reboot", "false || ssh web01 reboot", "ls; ssh web01 reboot", "ls | ssh web01 reboot", "ssh web01 reboot &", "! ssh web01 reboot",
		"(ssh web01 reboot)", "{ ssh web01 reboot; }", "echo $(ssh web01 reboot)", "echo `ssh web01 reboot`", `echo "$(ssh web01 reboot)"`, "cat <(ssh web01 reboot)",
		"X=$(ssh web01 reboot)", "export X=$(ssh web01 reboot)", "[[ -n $(ssh web01 reboot) ]]", "echo $(( $(ssh web01 reboot) + 1 ))", "echo ${X:-$(ssh web01 reboot)}",
		"cat <<EOF\n$(ssh web01 reboot)\nEOF", "cat <<< $(ssh web01 reboot)", "case $(ssh web01 reboot) in x) ;; esac", "case x in x) ssh web01 reboot;; esac",
		"if ssh web01 reboot; then :; fi", "while ssh web01 reboot; do :; done", "until ssh web01 reboot; do :; done", "for i in 1 2; do ssh web01 reboot; done",
		"for ((i=0;i<3;i++)); do ssh web01 reboot; done", "f() { ssh web01 reboot; }; f", "function f { ssh web01 reboot; }", "time ssh web01 reboot", "coproc ssh web01 reboot",
		"sudo ssh web01 reboot", "sudo -u deploy -E ssh web01 reboot", "nohup ssh web01 reboot", "timeout 10 ssh web01 reboot", "timeout -k 5 10s ssh web01 reboot",
		"nice -n 5 ssh web01 reboot", "command ssh web01 reboot", "exec ssh web01 reboot", "builtin command ssh web01 reboot", "setsid ssh web01 reboot", "stdbuf -oL ssh web01 reboot",
		"sshpass -p MARKER-x ssh web01 reboot", "sshpass -e ssh web01 reboot", "eval ssh web01 reboot", "eval 'ssh web01 reboot'", "trap 'ssh web01 reboot' EXIT", "watch ssh web01 reboot",
		"busybox sh -c 'ssh web01 reboot'", "tmux new-session -d 'ssh web01 reboot'", "bash <<'E'\nssh web01 reboot\nE", "bash <<< 'ssh web01 reboot'", "sudo -i <<'E'\nssh web01 reboot\nE",
		"ssh root@web01 reboot", "ssh ssh://root@web01:22/ reboot", "ssh -p 22 web01 reboot", "ssh -p22 web01 reboot", "ssh -l root web01 reboot", "ssh web01 -l root reboot",
		"ssh -o StrictHostKeyChecking=no web01 reboot", "ssh -oBatchMode=yes -i ~/.ssh/key web01 reboot", `ssh -i "$HOME/.ssh/key" web01 reboot`, "ssh -J jump web01 reboot",
		"ssh -tt -q web01 reboot", "ssh web01", "ssh web01 < script.sh", "ssh web01 sudo reboot", "ssh web01 'bash -c \"reboot\"'", "ssh web01 bash", "ssh web01 'bash -s' <<E\nreboot\nE",
		"ssh web01 <<E\nreboot\nE", "ssh web01 bash <<< reboot", "ssh web01 'cat; reboot'", "ssh web01 'uptime && reboot'", "ssh web01 'uptime | tee /etc/x'", "ssh web01 'echo x > /etc/x'",
		"ssh web01 \"ls $x\"", "ssh web01 'uptime; $x'", "ssh web01 'sort -o /etc/passwd x'", "ssh web01 'find / -delete'", "ssh web01 'date -s now'",
		"ssh web01 'LD_AUDIT=x ls'", "ssh web01 /tmp/ls", "ssh web01 ./ls", "ssh web01 'uniq a b'", "ssh web01 'awk 1 x'", "ssh web01 'systemctl restart x'", "ssh web01 unknown-program",
		"ssh web01 'cat x | sh'", "ssh web01 'sort --outp=x y'", "ssh web01 'dmesg -C'", "ssh web01 'hostname new'", "ssh web01 'ip link set eth0 down'", "ssh web01 'crontab x'", "ssh -N web01",
		"ssh web01 'sysctl a=b'", "ssh web01 'find . -exec rm {} +'", "ssh -s web01 sftp", "ssh web01 ''", "ssh web01 nginx", "ssh web01 'lastlog -C -u x'", "ssh web01 'pidstat -e rm x'", "ssh web01 'arch rm x'", "ssh web01 'export PATH=/tmp; ls'", "ssh web01 'echo $(reboot)'", "ssh web01 'cat <(reboot)'", "ssh web01 'journalctl --vacuum-time=1d'",
		"for h in web01; do ssh $h reboot; done", `for h in web01; do ssh "root@${h}" reboot; done`, "for h in WEB01 web01; do ssh web01 reboot; done",
		"systemctl -H web01 reboot", "systemctl --host=root@web01 restart nginx", "ssh web01 'docker rm -f x'", "winrs -r:web01 shutdown /r", "winrs -r:http://web01:5985 reboot",
		`pwsh -Command "Invoke-Command -ComputerName web01 { Restart-Service x }"`, `powershell.exe -NoProfile -c "ssh web01 reboot"`, `cmd.exe /c "ssh web01 reboot"`,
		"sftp web01", "sftp root@web01:/etc", "ssh-copy-id web01", "virsh destroy web01", "virsh -c qemu:///system reboot web01", "virsh shutdown --domain web01", "govc vm.power -off web01",
		"govc vm.power -off=true /dc/vm/web01", "govc vm.change -vm web01 -c 4", "govc vm.destroy web01", "docker -H ssh://root@web01 rm x", "docker --host=tcp://web01:2375 run x",
		"find . -name x -exec ssh web01 reboot ';'", "su -c 'ssh web01 reboot'", "watch -n 5 'ssh web01 reboot'", "alias r='ssh web01 reboot'", "at now <<< 'ssh web01 reboot'",
	} {
		got := shell.Read(line, shell.Bash)
		if len(got.Machines) != 1 || !strings.EqualFold(got.Machines[0].Name, "web01") || !got.Machines[0].Changed || got.Unresolved != "" {
			t.Errorf("%s\nis read as %q (%s), want web01 changed and nothing else", line, short(got), got.Unresolved)
		}
	}
}

func TestReadingIsToldFromChanging(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"ls -la /etc", "cat /etc/passwd", "sudo cat /etc/shadow", "df -h", "uptime", "systemctl status nginx", "systemctl --no-pager status nginx", "sudo systemctl is-active x",
		"journalctl -u nginx -n 50 --no-pager", "grep -r x /etc | head -5", "ps aux | grep nginx | wc -l", "cd /etc && ls", "ls 2>/dev/null", "ls > /dev/null 2>&1", "ls 2>&1",
		"for f in /etc/*; do stat $f; done", "if test -f x; then cat x; fi", "[ -f x ] && cat x", "LC_ALL=C sort x", "find /var -name x", "ip -br addr", "ip addr show", "ss -tlnp",
		"free -m", "/usr/bin/uptime", "tail -n 100 /var/log/syslog", "dpkg -l nginx", "rpm -qa", "docker ps", "docker logs x", "date", "date +%s", "hostname", "hostname -f", "id",
		"sh -c 'df -h'", "env LANG=C df", "timeout 5 df", "nice df", "find . -exec cat {} +", "cat <<E\nx\nE", "mount", "crontab -l", "sysctl -a", "uniq x", "sort x | uniq -c", "top -bn1",
		"x=$(cat y); echo $x", "while read l; do echo $l; done < /etc/passwd", "service nginx status", "command -v nginx", "dmesg | tail",
	} {
		quoted := "ssh web01 '" + strings.ReplaceAll(line, "'", `'\''`) + "'"
		if got := short(shell.Read(quoted, shell.Bash)); got != "web01" {
			t.Errorf("%s\nis read as %q, want web01 only read", quoted, got)
		}
		if got := short(shell.Read("ssh web01 <<'E_N_D'\n"+line+"\nE_N_D", shell.Bash)); got != "web01" {
			t.Errorf("%s\non stdin is read as %q, want web01 only read", line, got)
		}
	}
}

func TestChangingIsToldFromReading(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"rm x", "sudo rm x", "sudo -k rm x", "busybox --install", "/usr/bin/time -o x ls", "strace -o x ls", "sudo -e x", "service nginx stop", "service nginx", "service nginx status x", "ip addr add x dev y", "ip addr flush dev x", "ip link set x down", "ip netns exec x rm y", "sysctl -w a=b", "sysctl a=b",
		"sysctl -p", "top", "systemctl restart x", "hostname x", "hostname -F x", "date -s now", "date 0101", "dmesg -c", "dmesg --clear", "crontab -r", "crontab", "crontab -u root", "crontab x", "crontab -", "mount /dev/x /y",
		"mount -a", "mount -o remount /", "uniq a b", "sort -o x y", "sort --outp=x y", "sort -uo x y", "find . -delete", "find . -fls x", "find . -exec rm {} +", "find $x", "journalctl --rotate",
		"journalctl --vacuum-s=1", "journalctl --cursor-file=x", "ss -K", "lsof -D b", "sar -o x", "rpm -e x", "rpm -i x", "dpkg -i x", "dpkg --purge x", "apt install x", "yum update", "dnf $x", "timedatectl set-time x",
		"hostnamectl set-hostname x", "loginctl terminate-user x", "ufw disable", "iptables -F", "iptables -A INPUT", "netplan apply", "swapon /dev/x", "blkid -g", "file -C", "lastlog -C", "pidstat -e rm x", "nginx",
		"cat x > y", "cat x >> y", "cat > /etc/x", "ls &> y", "ls >| y", "ls 2> y", "ls 3<> y", "ls >& y", "cat x | tee y", "cat x | sh", "cat x | bash -s", "ls | xargs rm", "PATH=/tmp ls", "LD_PRELOAD=x ls",
		"export PATH=/tmp; ls", "/tmp/ls", "./ls", "alias ls=rm; ls", "ls() { rm x; }; ls", "$x", "$(cat x)", "eval $x", ". x", "source x", "bash x", "bash -c \"$x\"", "trap 'rm x' EXIT", "sed -i s/a/b/ x",
		"awk 1 x", "vi x", "less x", "git log", "docker rm x", "docker exec c ls", "kill 1", "reboot", "su - x", "sudo -i", "sudo su", "nohup x", "echo $(rm x)", "cat <(rm x)", "curl https://x", "wget https://x",
		"if [ -f x ]; then rm x; fi", "for f in a b; do rm $f; done", "cp a b", "mv a b", "touch x", "chmod 1 x", "mkdir x", "python3 -c 1", "unknown", "scp a b", "rsync a b", "psql -c x", "systemctl $x", "ip $x",
	} {
		quoted := "ssh web01 '" + strings.ReplaceAll(line, "'", `'\''`) + "'"
		if r := shell.Read(quoted, shell.Bash); len(r.Machines) != 1 || r.Machines[0] != (shell.Machine{Name: "web01", Changed: true}) {
			t.Errorf("%s\nis read as %q, want web01 changed", quoted, short(r))
		}
		if r := shell.Read("ssh web01 bash -s <<'E_N_D'\n"+line+"\nE_N_D", shell.Bash); len(r.Machines) != 1 || !r.Machines[0].Changed {
			t.Errorf("%s\non stdin is read as %q, want web01 changed", line, short(r))
		}
	}
}

func TestHarmlessMentions(t *testing.T) {
	t.Parallel()
	expectReadings(t, shell.Bash, []spelling{
		{"", "-"},
		{"# ssh web01 reboot", "-"},
		{`echo "ssh web01 rm -rf /"`, "-"},
		{"echo ssh web01 reboot", "-"},
		{"grep -r 'ssh web01' .", "-"},
		{"grep ssh web01", "-"},
		{"cat ssh.txt", "-"},
		{"ls ~/.ssh", "-"},
		{"which ssh", "-"},
		{"command -v ssh", "-"},
		{"type ssh scp", "-"},
		{"ssh -V", "-"},
		{"ssh -G web01", "-"},
		{"man ssh", "here!"},
		{"apt-get install ssh rsync", "here!"},
		{"systemctl restart ssh", "here!"},
		{`git commit -m "ssh web01 reboot"`, "here!"},
		{"git push origin main", "here!"},
		{"git -c user.name=x commit", "here!"},
		{"while IFS= read -r l; do echo $l; done < x", "-"},
		{"docker exec -it c bash", "here!"},
		{`rg "ssh" -t go`, "here!"},
		{"awk '/ssh/ {print}' x", "here!"},
		{"docker exec c sh -c ls", "here!"},
		{"cat <<'EOF' > run.sh\nssh web01 reboot\nEOF", "here!"},
		{"printf '%s' 'ssh web01 reboot' > x", "here!"},
		{"kill $(pgrep ssh)", "here!"},
		{"make deploy", "here!"},
		{"./deploy.sh web01", "here!"},
		{"npm test && go build ./...", "here!"},
		{"rm -rf build", "here!"},
		{"python3 -c 'print(1)'", "here!"},
		{"cd x && ls | head", "-"},
		{"ping -c1 web01", "-"},
		{`find . -name '*.go' -exec grep -l ssh {} +`, "-"},
		{"x=ssh; echo $x ${x@Q}", "-"},
		{"docker ps", "-"},
		{"docker run --rm alpine ls", "here!"},
		{"kubectl get pods -n x", "-"},
		{"kubectl --context prod describe pod x", "-"},
		{"kubectl config use-context x", "here!"},
		{"kubectl exec x -- ls /", "-"},
		{"terraform plan", "-"},
		{"terraform -chdir=x plan -out=p", "-"},
		{"terraform state list", "-"},
		{"helm list -n x", "-"},
		{"helm status x", "-"},
		{"aws ec2 describe-instances --region x", "-"},
		{"aws sts get-caller-identity", "-"},
		{"gcloud compute instances list", "-"},
		{"az vm list -o table", "-"},
		{"curl https://example.com", "-"},
		{"curl -s -o x https://example.com", "here!"},
		{`curl -s "$URL" | jq .`, "-"},
		{"curl -X POST -d @x http://localhost:8080/x", "-"},
		{"wget https://example.com/x.tgz", "here!"},
		{"psql -c 'select 1'", "here!"},
		{"zerto-rewind find web01", "-"},
		{"zerto-rewind protect web01 --action x && ls", "-"},
		{"qm list", "-"},
		{"qm config 100", "-"},
		{"qm snapshot 100 before", "-"},
		{"virsh list --all", "-"},
		{"virsh dominfo web01", "-"},
		{"virsh snapshot-create-as web01 x", "-"},
		{"govc vm.info web01", "-"},
		{"govc snapshot.create -vm web01 x", "-"},
		{"ansible all -m ping", "-"},
		{"ansible-playbook x.yml --syntax-check", "-"},
		{"ansible-playbook x.yml --list-hosts", "-"},
		{"awk '{print $1}' x", "here!"},
		{"[ -f x ] || exit 1", "-"},
		{"bash script.sh", "here!"},
		{"source .venv/bin/activate", "here!"},
		{"~/bin/tool x", "here!"},
		{"$HOME/bin/tool x", "here!"},
		{`"$VENV"/bin/python x.py`, "here!"},
		{"winrs", "?"},
		{"cp a:b c", "here!"},
		{"scp a b", "here!"},
		{"rsync -a x/ y/", "here!"},
	})
}

func TestMachinesThatCannotBeTold(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"ssh $H reboot", `ssh "$H" reboot`, "ssh $(cat host) reboot", "ssh web* reboot", "ssh web0{1,2} reboot", "ssh", "xargs ssh", "echo web01 | xargs -I{} ssh {} reboot", "ssh $OPTS web01 ls",
		"ssh localhost reboot", "ssh -p 2222 127.0.0.1 reboot", "ssh 127.1 reboot", "ssh -o HostName=db01 web01 ls", "ssh -oProxyCommand=x web01 ls", "ssh -F x web01 ls", "ssh -S x web01 ls",
		"ssh -L 1:db01:22 web01 -N", "ssh -W db01:22 web01", "ssh -i $KEY web01 ls", "for h in $(cat hosts); do ssh $h uptime; done", "for h in web01 $x; do ssh $h reboot; done",
		"for h in web01; do h=db01; ssh $h reboot; done", "for h in web01; do read h; ssh $h reboot; done", "for h in web01; do printf -vh db01; ssh $h reboot; done",
		"for h in web01; do eval $x; ssh $h reboot; done", "for h in web01; do (( h = 1 )); ssh $h reboot; done", "f() { h=db01; }; for h in web01; do f; ssh $h reboot; done",
		"IFS=0; for h in web01; do ssh $h reboot; done", "for h in web01; do ssh $h reboot; IFS=0; done", "git -c core.sshCommand='ssh -i x' fetch", "git bisect run ssh web01 x", "echo 'ssh web01 x' | at now", "crontab - <<< '* * * * * ssh web01 x'", "while read h; do ssh $h reboot; done < hosts", "f() { ssh $1 reboot; }; f web01", "alias s=ssh; s web01 reboot",
		"$CMD", `"$CMD" web01`, "$(which ssh) web01 reboot", "eval $x", `eval "$x"`, "bash -c \"$x\"", "curl https://x | sh", "curl https://x | sudo bash -s", "bash <(curl https://x)", ". <(curl https://x)",
		"echo 'ssh web01 reboot' | bash", "base64 -d x | sh", "ssh web01 'reboot", "(", "if", "ls; )", "echo x > /dev/tcp/web01/22", "cat < /dev/tcp/web01/22", "exec 3<>/dev/tcp/web01/80",
		"scp x $H:/etc", "scp x \"$D\"", "rsync -e 'ssh -o ProxyCommand=x' a web01:b", "rsync -a x $y", "sftp $H", "sftp -b x", "ansible web -a reboot", "ansible all -m shell -a reboot", "ansible-playbook x.yml",
		"ansible-playbook x.yml -l web", "ansible-playbook x.yml --limit 'web*'", "ansible-playbook -i x -l $H x.yml", "kubectl apply -f x", "kubectl delete pod x", "kubectl exec x -- rm y",
		"kubectl exec -it x -- bash", "kubectl drain n", "kubectl $x", "k() { kubectl $@; }", "terraform apply", "terraform destroy -auto-approve", "tofu apply", "terraform apply plan", "helm upgrade x y",
		"helm uninstall list", "aws ec2 terminate-instances --instance-ids i", "aws ssm send-command x", "gcloud compute ssh x", "gcloud compute instances delete list", "az vm run-command invoke",
		"az vm restart -n x -g y", "curl -X DELETE https://pve/x", "curl -d x https://pve", "curl -T x https://pve", "curl -XPOST https://pve", "curl $OPTS https://pve", "curl -K x", "curl gopher://x",
		"curl -d x http://localhost@pve/", "wget --post-data x https://pve", "psql -h db01 -c x", "mysql -hdb01", "psql postgres://db01/x", "mosh web01", "nc web01 22", "telnet web01", "docker --context x rm y",
		"docker -H $D rm x", "DOCKER_HOST=ssh://web01 docker rm x", "export DOCKER_HOST=ssh://web01", "docker run x ssh web01 reboot", "strange ssh web01 reboot", "virsh destroy $D", "virsh pool-destroy x",
		"virsh snapshot-revert web01 x", "qm rollback 100 x", "qm stop $ID", "qm stop web01", "govc vm.power -off $V", "govc vm.change -c 4", "govc snapshot.remove -vm web01 x", "govc host.shutdown x",
		"python3 -c 'import paramiko'", "python3 <<E\nimport subprocess; subprocess.run(['ssh','web01'])\nE", "awk '{system(\"ssh \" $1)}' x", "perl -e 'system(\"ssh web01\")'", "GIT_SSH_COMMAND=x git fetch",
		"zerto-rewind sweep", "zerto-rewind protect web01 --zvm-url https://x", "ZVM_URL=https://x zerto-rewind protect web01", "export ZVM_PASSWORD=MARKER-x", "pssh -h hosts reboot",
		"parallel -S web01 reboot", "pwsh -EncodedCommand x", "pwsh -c $x", "sudo $x", "env $x", "parallel ssh web01 ::: reboot", `cmd /c "ssh ^web01 reboot"`, "net use \\\\\\\\web01", "select h in web01; do ssh $h; done",
		"ssh web01\u00a0 reboot", "sh", "sudo -s", "systemctl -H $H restart x", "vagrant ssh web01", strings.Repeat("(", 200) + "ls" + strings.Repeat(")", 200) + " $(", "x=y; echo ${x@P}", "ssh -P web01 reboot", "ls \x00", "ls \ufdd0", "ls \u0080\nssh web01 reboot", "ls \u0081\nssh web01 reboot", "ls \xff",
	} {
		if got := shell.Read(line, shell.Bash); got.Unresolved == "" {
			t.Errorf("%s\nis read as %q, want something unresolved", line, short(got))
		}
	}
}

func TestSeveralMachines(t *testing.T) {
	t.Parallel()
	expectReadings(t, shell.Bash, []spelling{
		{"ssh web01 uptime; ssh db01 reboot", "web01 db01!"},
		{"ssh web01 'ssh db01 reboot'", "web01 db01!"},
		{"ssh web01 'reboot; ssh db01 uptime'", "web01! db01"},
		{"for h in web01 web02; do ssh $h reboot; done", "web01! web02!"},
		{"for h in web01 web02; do ssh $h uptime; done", "web01 web02"},
		{"for h in a b; do for i in 1 2; do ssh $h$i reboot; done; done", "a1! a2! b1! b2!"},
		{"ssh web01 uptime; ssh WEB01 reboot", "web01!"},
		{"ssh web01 reboot > log", "web01! here!"},
		{"scp x web01:/etc/x", "web01!"},
		{"scp -O x web01:y", "web01!"},
		{"scp web01:/etc/x .", "web01 here!"},
		{"scp -r -P 22 root@web01:/x db01:/y", "web01 db01!"},
		{"scp x scp://root@web01:22/etc", "web01!"},
		{"scp -3 web01:x '[2001:db8::1]:y'", "web01 2001:db8::1!"},
		{"scp ./a:b c", "here!"},
		{"scp C:/x web01:y", "web01!"},
		{"scp $f web01:/etc", "web01! ?"},
		{`scp "$f" web01:/etc`, "web01! ?"},
		{`scp "./$f" web01:/etc`, "web01!"},
		{"ssh web01 $x", "web01! ?"},
		{`ssh web01 "$@"`, "web01! ?"},
		{"xargs -n1 ssh web01", "web01! ?"},
		{"rsync -az --delete x/ root@web01:/srv/", "web01!"},
		{"rsync -az web01:/srv/ x/", "web01 here!"},
		{"rsync -e ssh x web01:y", "web01!"},
		{"rsync -e 'ssh -p 22' x web01:y", "web01!"},
		{"rsync x web01::mod/y", "web01!"},
		{"rsync x rsync://web01/mod", "web01!"},
		{"rsync -n x web01:y", "web01"},
		{"rsync web01:", "web01"},
		{"rsync --remove-source-files web01:x y", "web01! here!"},
		{"tar c . | ssh web01 'tar x'", "web01! here!"},
		{"ssh web01 'cat x' | ssh db01 'cat > y'", "web01 db01!"},
		{"qm stop 100", "100!"},
		{"qm guest exec 100 -- reboot", "100!"},
		{"pct exec 101 -- ls", "101!"},
		{"qm set 100 --memory 4096 && qm start 100", "100!"},
		{"ansible web01.example.com -a reboot", "web01.example.com!"},
		{"ansible web01.example.com -a 'df -h'", "web01.example.com"},
		{"ansible web01.example.com,db01.example.com -m service -a name=x", "web01.example.com! db01.example.com!"},
		{"ansible-playbook x.yml -l web01.example.com", "web01.example.com!"},
		{"ansible-playbook x.yml --limit=10.0.0.1", "10.0.0.1!"},
		{"ansible-playbook -C x.yml -l 10.0.0.1", "10.0.0.1!"},
		{"govc vm.power -off a b", "a! b!"},
		{"govc guest.run -vm web01 reboot", "web01!"},
		{"docker -H ssh://web01 ps", "web01"},
		{"virsh reboot 'Web server (old)'", "Web server (old)!"},
		{"sudo ssh web01 df; ssh db01 df", "web01 db01"},
		{"ssh 10.0.0.5 reboot", "10.0.0.5!"},
		{"ssh fe80::1%eth0 reboot", "?"},
		{"ssh root@2001:db8::5 reboot", "2001:db8::5!"},
		{"ssh web01 reboot; (", "web01! ?"},
		{`ssh web01 "cat \$HOME/x"`, "web01"},
		{`"ssh" "web01" "cat \"x y\""`, "web01"},
		{"ssh web01 <<E\ncat \\$x\nE", "web01"},
		{"ssh web01 <<E\ncat $x\nE", "web01!"},
		{"ssh web01 <<<'df -h'", "web01"},
		{"ssh web01 df 0<&3", "web01"},
		{"ssh web01 bash <<< df < x", "web01!"},
		{"rsync --list-only web01:x y", "web01"},
		{"rsync -avn x web01:y", "web01"},
		{"sftp web01:/x", "web01!"},
		{"ssh-copy-id -i x root@web01", "web01!"},
		{"ssh-copy-id $H", "?"},
		{"rsync x", "-"},
		{"rsync --rsync-path='sudo rsync' x web01:y", "web01! ?"},
		{"rsync -e 'ssh x' a web01:b", "web01! ?"},
		{"rsync -e 'ssh -F x' a web01:b", "web01! ?"},
		{"ssh -E log web01 df", "web01 here!"},
		{"virsh", "here! ?"},
		{"virsh 'start web01; ls'", "?"},
		{"virsh $x web01", "?"},
		{"govc vm.destroy", "?"},
		{"govc", "-"},
		{"govc $x", "?"},
		{"govc vm.power -off -vm.ip 10.0.0.1", "10.0.0.1! ?"},
		{"qm", "-"},
		{"qm $x 100", "?"},
		{"qm guest cmd 100 ping", "100!"},
		{"ansible", "?"},
		{"ansible --list-hosts all", "-"},
		{"ansible web01.x -m setup", "web01.x"},
		{"ansible web01.x -m shell -a 'df > y'", "web01.x!"},
		{"ansible web01.x -m copy", "web01.x!"},
		{"ansible web01.x", "web01.x!"},
		{"ansible $x -m copy", "?"},
		{"ansible web01.x -e ansible_host=db01 -m copy", "web01.x! ?"},
		{"ansible web01.x --ssh-extra-args=-J -m copy", "web01.x! ?"},
		{"ansible web01.x -l $x -m copy", "?"},
		{"ansible web01.x -l \"$x\" -m copy", "web01.x! ?"},
		{"docker $x ps", "?"},
		{"docker -H unix:///x rm y", "here!"},
		{"docker -H ssh://localhost rm y", "?"},
		{"docker --context x ps", "-"},
		{"winrs -r:web01", "web01!"},
		{"winrs -r:web01 type x", "web01"},
		{"hostnamectl -H root@web01 status", "web01"},
		{"zerto-rewind --version", "-"},
		{"zerto-rewind", "?"},
		{"cmd", "here! ?"},
		{"powershell ssh web01 reboot", "web01! here!"},
		{"powershell -ExecutionPolicy Bypass -File x.ps1", "here!"},
		{"powershell x.ps1", "here!"},
		{"pwsh -e abc", "here! ?"},
		{"pwsh -ec abc", "here! ?"},
		{"pwsh $x", "here! ?"},
		{"pwsh", "here! ?"},
		{"pwsh -version", "-"},
		{"pwsh -NoProfile -NonInteractive -Command 'Get-Date'", "-"},
		{"kubectl", "-"},
		{"kubectl auth can-i x", "-"},
		{"kubectl rollout restart x", "?"},
		{"curl --url file:///x", "-"},
		{"curl -X POST", "?"},
		{"wget -e x https://y", "here! ?"},
		{"helm", "-"},
		{"helm list", "-"},
		{"aws --version", "-"},
		{"aws $x", "?"},
		{"terraform $x", "?"},
		{"flock x", "here!"},
		{"at -f x now", "here!"},
		{"trap", "-"},
		{"eval", "-"},
		{"bash --version", "-"},
		{"bash -c", "-"},
		{"bash -", "here! ?"},
		{"bash /dev/stdin", "here! ?"},
		{"sudo", "-"},
		{"timeout $x ssh web01 reboot", "here! ?"},
		{"env -S \"ssh web01 $x\"", "web01! here! ?"},
	})
}
