package shell

import (
	"slices"
	"strings"
)

// special returns how a program is read that reaches other machines, or that runs what it is given in a way of its own.
// It is nil for every other program.
func special(name string) func(*reader, command) {
	if read := remote(name); read != nil {
		return read
	}
	if shells[name] {
		return (*reader).shellProgram
	}
	switch name {
	case "pwsh", "powershell":
		return (*reader).powerShellProgram
	case "cmd":
		return (*reader).cmd
	case "eval":
		return (*reader).eval
	case "source", ".":
		return (*reader).source
	case "trap":
		return (*reader).trap
	case "alias":
		return (*reader).alias
	case "git":
		return (*reader).git
	case "at", "batch":
		return (*reader).later
	case "find":
		return (*reader).find
	case "systemctl", "hostnamectl", "timedatectl", "loginctl", "localectl":
		return (*reader).manager
	case "tmux", "screen", "script", "su", "runuser", "expect", "flock", "concurrently":
		return (*reader).terminal
	}
	return nil
}

// reaches reports whether a program of this name is one that reaches other machines.
func reaches(name string) bool { return remote(name) != nil }

func remote(name string) func(*reader, command) {
	switch name {
	case "ssh", "slogin":
		return (*reader).ssh
	case "scp":
		return func(r *reader, c command) { r.copies(c, scpOptions, false) }
	case "rsync":
		return func(r *reader, c command) { r.copies(c, rsyncOptions, true) }
	case "sftp":
		return (*reader).sftp
	case "ssh-copy-id":
		return (*reader).sshCopyID
	case "ansible":
		return (*reader).ansible
	case "ansible-playbook":
		return (*reader).playbook
	case "kubectl", "oc":
		return (*reader).kubectl
	case "docker", "podman", "nerdctl", "docker-compose":
		return (*reader).docker
	case "virsh":
		return (*reader).virsh
	case "qm", "pct":
		return (*reader).proxmox
	case "govc":
		return (*reader).govc
	case "winrs":
		return (*reader).winrs
	case "curl":
		return (*reader).curl
	case "wget":
		return (*reader).wget
	case "mysql", "mariadb", "psql", "mongosh", "mongo", "redis-cli", "mysqldump", "pg_dump", "pg_restore", "sqlcmd":
		return (*reader).database
	case "zerto-rewind":
		return (*reader).ourselves
	}
	if clouds[name] != nil {
		return (*reader).cloud
	}
	if unreadable[name] {
		return func(r *reader, _ command) { r.found.unresolved(notNamed) }
	}
	return nil
}

// unreadable lists programs that reach other machines in ways that are not read here.
var unreadable = set(`mosh autossh rsh rexec rlogin plink pscp psftp putty telnet nc ncat netcat socat sshfs pssh parallel-ssh pscp.pssh pdsh pdcp
	clush dsh mussh cssh fab salt salt-ssh salt-run puppet bolt knife chef-run psexec psexec64 paexec wmic winexe evil-winrm
	wmiexec.py smbclient rpcclient lftp ftp tftp ncftp rclone ipmitool ipmipower racadm ansible-pull ansible-console
	ansible-navigator vim-cmd esxcli xe xl virt-install virt-clone vmrun vboxmanage lxc incus multipass vagrant qmrestore pvesh
	pulumi cdk serverless sls packer nomad waypoint cap kamal skaffold argocd flux k9s schtasks mstsc xfreerdp`)

// winrs runs a command on a Windows machine.
func (r *reader) winrs(c command) {
	machine, where := "", 0
	for i, w := range c.args() {
		lower := strings.ToLower(w.text)
		if !strings.HasPrefix(lower, "-") && !strings.HasPrefix(lower, "/") {
			break
		}
		where = i + 1
		if option, value, ok := strings.Cut(lower[1:], ":"); ok && (option == "r" || option == "remote") && w.known() {
			value = value[strings.LastIndex(value, "/")+1:]
			machine = withoutPort(value)
		}
	}
	name, ok := hostName(machine)
	if !ok {
		r.found.unresolved(noMachine)
		return
	}
	there, rest := r.at(name), c.args()[where:]
	if len(rest) == 0 {
		there.changes()
		return
	}
	there.cmdLine(join(rest))
}

// cmd reads the command processor of Windows as a program.
func (r *reader) cmd(c command) {
	for i, w := range c.args() {
		if lower := strings.ToLower(w.text); lower == "/c" || lower == "/k" || lower == "//c" || lower == "//k" {
			r.cmdLine(join(c.args()[i+1:]))
			return
		}
	}
	r.shellOnStdin()
}

// cmdLine reads a line of the Windows command processor, whose simple commands are those of other shells.
func (r *reader) cmdLine(text string) {
	if strings.ContainsAny(text, "^%!") || strings.Contains(text, `\\`) {
		r.unknownCode("a line for the Windows command processor cannot be read")
	}
	r.code(strings.ReplaceAll(text, `\`, "/"), Bash)
}

var managerOptions = grammar{short: "HMtpnos", long: "--host --machine --type --property --lines --output --signal --state --root"}

// manager reads the programs of systemd, which reach another machine with -H.
func (r *reader) manager(c command) {
	name, _ := programName(c.words[0])
	options, _, _ := managerOptions.all(c.args())
	host, given := valueOf(options, "-H", "--host")
	given = given || slices.ContainsFunc(c.args(), func(w word) bool { return isHostOption(w.text) })
	if !given {
		r.ordinary(name, c)
		return
	}
	machine, ok := sshHost(host)
	if !ok {
		r.found.unresolved(noMachine)
		return
	}
	rest := []word{c.words[0]}
	for i, w := range c.args() {
		if !isHostOption(w.text) && c.words[i].text != "-H" && c.words[i].text != "--host" {
			rest = append(rest, w)
		}
	}
	r.at(machine).ordinary(name, c.with(rest...))
}

func isHostOption(text string) bool {
	return strings.HasPrefix(text, "-H") || strings.HasPrefix(text, "--host")
}

// database reads a client of a database server: a machine's data is on the machine.
func (r *reader) database(c command) {
	for _, w := range c.args() {
		if w.splits || strings.HasPrefix(w.text, "-h") && w.text != "-help" || strings.HasPrefix(w.text, "--host") ||
			strings.Contains(w.text, "://") || strings.Contains(w.text, "host=") || strings.HasPrefix(w.text, "-S") {
			r.found.unresolved(notNamed)
			return
		}
	}
	r.changes()
}

// ourselves reads the command line of this product. The verbs that change nothing but our own journal tags are safe, and
// only with the ZVM that the agent was given: whoever may choose another could be sent the password.
func (r *reader) ourselves(c command) {
	options, operands, ok := grammar{long: "--action --change --agent --timeout --host"}.all(c.args())
	for _, o := range options {
		ok = ok && ourOptions[o.name]
	}
	if ok && len(operands) == 0 && has(options, "--help", "--version", "-h") {
		return
	}
	if !ok || len(operands) == 0 || !ourVerbs[operands[0].text] || c.steered {
		r.found.unresolved("it calls zerto-rewind with more than the verbs and options that are safe for everybody")
	}
}

var (
	ourVerbs   = set("protect find guards check version help")
	ourOptions = set("--action --change --agent --timeout --json --help -h --version")
)
