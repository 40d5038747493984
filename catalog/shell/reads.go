package shell

import (
	"slices"
	"strings"
)

// readRule says with which arguments a program only reads. The zero value says: with whatever arguments.
type readRule struct {
	// not are options that make it write or run something. Long ones may be abbreviated, short ones grouped.
	not []string
	// only are the options it may have; nil means any but those in not.
	only []string
	// verbs are what its first operand must be, where there are any.
	verbs string
	// bare means that it writes if it is given an operand.
	bare bool
	// one means that it writes to its second operand.
	one bool
	// also has to hold besides, if there is one.
	also func(args []word) bool
}

// reads lists the programs that can only read. What is missing here changes something: a wrong entry costs a machine,
// and a missing one costs a checkpoint. So none that runs other programs or has a language of its own is in it: awk has
// system(), less and man start an editor, git and vi run what their settings name.
var reads = map[string]readRule{
	"[": {}, "[[": {}, ":": {}, "basename": {}, "break": {}, "cat": {}, "cd": {}, "cksum": {}, "cmp": {}, "comm": {}, "continue": {},
	"cut": {}, "df": {}, "diff": {}, "dirname": {}, "du": {}, "echo": {}, "egrep": {}, "exit": {}, "expand": {}, "expr": {}, "false": {},
	"fgrep": {}, "findmnt": {}, "fold": {}, "free": {}, "getconf": {}, "getent": {}, "getfacl": {}, "grep": {}, "groups": {}, "head": {},
	"hexdump": {}, "hostid": {}, "id": {}, "iostat": {}, "join": {}, "jq": {}, "last": {}, "logname": {}, "ls": {}, "lsattr": {},
	"lsblk": {}, "lscpu": {}, "lsmod": {}, "lsns": {}, "lspci": {}, "lsusb": {}, "md5sum": {}, "mpstat": {}, "namei": {}, "nl": {},
	"nproc": {}, "numfmt": {}, "od": {}, "paste": {}, "pgrep": {}, "pidof": {}, "printenv": {}, "printf": {}, "ps": {}, "pstree": {},
	"pwd": {}, "readlink": {}, "realpath": {}, "return": {}, "rev": {}, "seq": {}, "set": {}, "sha1sum": {}, "sha224sum": {}, "sha256sum": {},
	"sha384sum": {}, "sha512sum": {}, "shift": {}, "sleep": {}, "stat": {}, "strings": {}, "sum": {}, "tac": {}, "tail": {}, "test": {}, "tr": {},
	"true": {}, "tty": {}, "type": {}, "uname": {}, "unexpand": {}, "uptime": {}, "vmstat": {}, "w": {}, "wait": {}, "wc": {}, "whereis": {}, "which": {},
	"who": {}, "whoami": {}, "zcat": {}, "zgrep": {}, "nslookup": {}, "dig": {}, "host": {}, "ping": {}, "traceroute": {}, "netstat": {},

	"apt":         {verbs: "list show search policy depends rdepends"},
	"apt-cache":   {verbs: "policy show search depends rdepends madison stats"},
	"blkid":       {only: []string{"-o", "-s", "-t", "-L", "-U", "-p", "-i"}},
	"crontab":     {only: []string{"-l", "-u"}, bare: true, also: lists},
	"date":        {not: []string{"-s", "--set"}, verbs: "+"},
	"dmesg":       {only: []string{"-T", "-H", "-k", "-u", "-l", "-f", "-x", "-t", "-w", "--ctime", "--level", "--facility", "--human", "--since", "--until"}, bare: true},
	"dnf":         {verbs: "list info search repolist check-update"},
	"dpkg":        {only: []string{"-l", "-s", "-L", "-S", "--list", "--status", "--listfiles", "--search"}},
	"dpkg-query":  {},
	"file":        {not: []string{"-C", "--compile"}},
	"hostname":    {not: []string{"-F", "--file", "-b", "--boot"}, bare: true},
	"hostnamectl": {verbs: "status"},
	"ip":          {only: []string{"-4", "-6", "-s", "-d", "-o", "-j", "-p", "-br", "-brief", "-c", "-json"}, verbs: "addr address a link l route r rule neigh n", also: showsOnly},
	"iptables":    {only: []string{"-L", "-S", "-n", "-v", "-t"}},
	"journalctl":  {not: []string{"--vacuum-size", "--vacuum-time", "--vacuum-files", "--rotate", "--flush", "--sync", "--relinquish-var", "--smart-relinquish-var", "--setup-keys", "--update-catalog", "--cursor-file"}},
	"loginctl":    {verbs: "list-sessions list-users show-session show-user session-status user-status"},
	"lsof":        {not: []string{"-D"}},
	"mount":       {only: []string{"-l", "-t"}, bare: true},
	"rpm":         {only: []string{"-q", "-a", "-i", "-l", "-f", "-c", "-V", "--query", "--info", "--list", "--changelog"}, also: queries},
	"lastlog":     {not: []string{"-C", "-S", "--clear", "--set"}},
	"pidstat":     {not: []string{"-e"}},
	"sar":         {not: []string{"-o"}},
	"service":     {also: asksStatus},
	"sort":        {not: []string{"-o", "--output", "--compress-program"}},
	"ss":          {not: []string{"-K", "--kill", "-D", "--diag"}},
	"sysctl":      {only: []string{"-a", "-n", "-N", "--all", "--values"}, also: setsNothing},
	"systemctl":   {verbs: "status show cat list-units list-unit-files list-timers list-sockets list-dependencies list-jobs is-active is-enabled is-failed is-system-running get-default"},
	"timedatectl": {verbs: "status show timesync-status list-timezones"},
	"top":         {only: []string{"-b", "-n", "-d", "-p", "-u", "-o", "-c", "-w"}, also: isBatch},
	"ufw":         {verbs: "status"},
	"uniq":        {one: true},
	"yum":         {verbs: "list info search repolist check-update"},
	"export":      {},
	"unset":       {},
	"read":        {},
	"netplan":     {verbs: "get status"},
	"lvs":         {}, "vgs": {}, "pvs": {}, "xfs_info": {}, "swapon": {only: []string{"-s", "--show"}, bare: true},
}

// binFolders are where the programs of these names are the system's. A program of the same name elsewhere is another.
var binFolders = set("/bin/ /sbin/ /usr/bin/ /usr/sbin/ /usr/local/bin/ /usr/local/sbin/")

// isRead reports whether a command only reads.
func (r *reader) isRead(c command) bool {
	text := c.words[0].text
	name := text[strings.LastIndexByte(text, '/')+1:]
	folder := strings.TrimSuffix(text, name)
	rule, listed := reads[name]
	if !listed || c.steered || folder != "" && !binFolders[folder] {
		return false
	}
	return rule.allows(c.args())
}

func (rule readRule) allows(args []word) bool {
	if rule.also != nil && !rule.also(args) {
		return false
	}
	if len(rule.not) == 0 && rule.only == nil && rule.verbs == "" && !rule.bare && !rule.one {
		return true
	}
	operands := 0
	for i, w := range args {
		switch {
		case w.splits, strings.HasPrefix(w.text, string(hole)):
			return false
		case strings.HasPrefix(w.text, "-") && len(w.text) > 1:
			if !rule.allowsOption(w.text) {
				return false
			}
		case rule.isValue(args, i):
		case rule.bare, rule.one && operands > 0, rule.verbs != "" && operands == 0 && !rule.isVerb(w.text):
			return false
		default:
			operands++
		}
	}
	return true
}

func asksStatus(args []word) bool {
	return len(args) == 2 && args[1].text == "status" || len(args) == 1 && args[0].text == "--status-all"
}

// showsOnly reads the objects of ip, behind which stands a verb, or none.
func showsOnly(args []word) bool {
	operands := slices.DeleteFunc(slices.Clone(args), func(w word) bool { return strings.HasPrefix(w.text, "-") })
	return len(operands) < 2 || operands[1].known() && isOneOf(operands[1].text, "show list ls get")
}

func setsNothing(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return !w.known() || strings.Contains(w.text, "=") })
}

// queries reports whether rpm only answers. In its other modes the same letters mean to install.
func queries(args []word) bool {
	return len(args) > 0 && (strings.HasPrefix(args[0].text, "-q") || args[0].text == "--query")
}

// lists reports whether crontab prints its table. Without that option it reads a new one.
func lists(args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool { return w.text == "-l" })
}

// isBatch reports whether top only prints. Otherwise its user can end programs.
func isBatch(args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "-b") })
}

// isVerb reports whether the first operand is one with which the program reads. That of date is a format.
func (rule readRule) isVerb(text string) bool {
	if rule.verbs == "+" {
		return strings.HasPrefix(text, "+")
	}
	return isOneOf(text, rule.verbs)
}

// isValue reports whether the word may be the value of an option in front of it. Only where an operand alone would make
// the program write, and all its options are known, does that matter.
func (rule readRule) isValue(args []word, i int) bool {
	return rule.only != nil && rule.bare && i > 0 && len(args[i-1].text) == 2 && args[i-1].text[0] == '-' && strings.ContainsAny(args[i-1].text, "utlf")
}

func (rule readRule) allowsOption(text string) bool {
	if strings.HasPrefix(text, "--") {
		name, _, _ := strings.Cut(text, "=")
		abbreviates := func(long string) bool { return strings.HasPrefix(long, name) }
		return !slices.ContainsFunc(rule.not, abbreviates) && (rule.only == nil || slices.Contains(rule.only, name))
	}
	if slices.Contains(rule.only, text) {
		return true
	}
	for i := 1; i < len(text); i++ {
		if '0' <= text[i] && text[i] <= '9' {
			continue // a number behind an option that takes one
		}
		letter := "-" + text[i:i+1]
		if slices.Contains(rule.not, letter) || rule.only != nil && !slices.Contains(rule.only, letter) {
			return false
		}
	}
	return true
}
