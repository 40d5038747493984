package shell

import "strings"

var (
	sshOptions   = grammar{short: "bceilmopBDEFIJLOPQRSWw"}
	scpOptions   = grammar{short: "cDFiJloPSX"}
	sftpOptions  = grammar{short: "BbcDFiJloPRSsX"}
	rsyncOptions = grammar{short: "efBTM", long: `--rsh --filter --exclude --include --exclude-from --include-from --files-from --block-size
		--temp-dir --compare-dest --copy-dest --link-dest --backup-dir --suffix --rsync-path --timeout --contimeout --port --log-file
		--log-file-format --out-format --password-file --bwlimit --chmod --chown --usermap --groupmap --max-size --min-size --max-delete
		--partial-dir --modify-window --sockopts --address --iconv --compress-level --remote-option --info --debug --protocol`}
)

func (r *reader) ssh(c command) {
	options, rest, ok := sshOptions.leading(c.args())
	if has(options, "-V", "-Q", "-G") {
		return
	}
	if !ok || len(rest) == 0 {
		r.found.unresolved(noMachine)
		return
	}
	machine, isName := sshHost(rest[0])
	more, remote, ok := sshOptions.leading(rest[1:])
	if options = append(options, more...); !ok {
		// What cannot be told apart here begins the command, or may be an option that aims elsewhere.
		r.found.unresolved(strangeOptions)
	}
	r.checkSSHOptions(options)
	if has(options, "-P") {
		r.found.unresolved(strangeOptions) // it takes a value in some versions only
	}
	if !isName {
		r.found.unresolved(noMachine)
		return
	}
	r.at(machine).remoteShell(remote, has(options, "-N", "-s"))
}

// remoteShell reads what a login shell gets: its arguments joined, or its stdin.
func (r *reader) remoteShell(words []word, noShell bool) {
	switch {
	case strings.TrimSpace(join(words)) != "" && !noShell:
		r.code(join(words), Bash)
	case strings.TrimSpace(join(words)) == "" && !noShell && r.stdin != nil:
		text := *r.stdin
		r.stdin = nil
		r.code(text, Bash)
	default:
		r.changes()
	}
}

// checkSSHOptions looks for options that make a name mean another machine, run something here, or open a way that later
// commands can take.
func (r *reader) checkSSHOptions(options []option) {
	for _, o := range options {
		switch o.name {
		case "-S", "-W", "-w", "-D", "-L", "-R", "-O", "-I":
			r.found.unresolved(strangeOptions)
		case "-F":
			if o.value.text != "/dev/null" && o.value.text != "none" {
				r.found.unresolved(strangeOptions)
			}
		case "-E":
			r.found.ChangesLocal = r.found.ChangesLocal || r.onAgents()
		case "-o":
			key, _, _ := strings.Cut(strings.Replace(strings.TrimSpace(o.value.text), " ", "=", 1), "=")
			if !plainSSHSettings[strings.ToLower(key)] {
				r.found.unresolved(strangeOptions)
			}
		}
	}
}

var plainSSHSettings = set(`addressfamily batchmode checkhostip ciphers compression connectionattempts connecttimeout controlpersist
	exitonforwardfailure forwardagent forwardx11 globalknownhostsfile gssapiauthentication hashknownhosts hostkeyalgorithms
	identitiesonly identityfile kbdinteractiveauthentication kexalgorithms loglevel macs numberofpasswordprompts
	passwordauthentication port preferredauthentications proxyjump pubkeyacceptedalgorithms pubkeyacceptedkeytypes
	pubkeyauthentication requesttty serveralivecountmax serveraliveinterval stricthostkeychecking tcpkeepalive updatehostkeys user
	userknownhostsfile verifyhostkeydns visualhostkey`)

// copies reads scp and rsync, which write to the last of their operands.
func (r *reader) copies(c command, g grammar, rsync bool) {
	options, files, ok := g.all(c.args())
	if rsync {
		r.checkRsyncOptions(options)
	} else {
		r.checkSSHOptions(without(options, "-O", "-R", "-D"))
	}
	if !ok {
		r.found.unresolved(noMachine)
	}
	if len(files) == 0 {
		return
	}
	if len(files) == 1 && rsync {
		r.end(files[0], has(options, "--remove-source-files", "--remove-sent-files"))
		return
	}
	for _, source := range files[:len(files)-1] {
		r.end(source, has(options, "--remove-source-files", "--remove-sent-files"))
	}
	if rsync && has(options, "-n", "--dry-run", "--list-only") {
		r.end(files[len(files)-1], false)
		return
	}
	r.end(files[len(files)-1], true)
}

func (r *reader) checkRsyncOptions(options []option) {
	for _, o := range options {
		switch o.name {
		case "-e", "--rsh":
			// The shell gets the machine and more behind what stands here.
			program, _, _ := strings.Cut(o.value.text, " ")
			if program != "ssh" || strings.ContainsRune(o.value.text, hole) {
				r.found.unresolved(strangeOptions)
				continue
			}
			var words []word
			for text := range strings.FieldsSeq(o.value.text) {
				words = append(words, plain(text))
			}
			given, rest, ok := sshOptions.leading(words[1:])
			r.checkSSHOptions(given)
			if !ok || len(rest) > 0 {
				r.found.unresolved(strangeOptions)
			}
		case "--rsync-path", "-M", "--remote-option", "--daemon", "--server", "--config", "--files-from":
			r.found.unresolved(strangeOptions)
		}
	}
}

// end reads one end of a copy, which is a file here or on another machine.
func (r *reader) end(w word, changed bool) {
	host, isRemote := remoteEnd(w.text)
	switch {
	case isRemote:
		machine, ok := sshHost(word{text: host, splits: w.splits && strings.ContainsRune(host, hole)})
		if !ok {
			r.found.unresolved(noMachine)
			return
		}
		if there := r.at(machine); changed {
			there.changes()
		}
	case strings.HasPrefix(w.text, string(hole)) && w.text == string(hole):
		if changed || w.splits {
			r.found.unresolved(noMachine) // it may hold the name of a machine
		}
	case changed:
		r.changes()
	}
}

// remoteEnd returns the machine's part of [user@]host:path, or of a URL. A colon behind a slash belongs to a file name.
func remoteEnd(text string) (host string, ok bool) {
	if strings.Contains(text, "://") {
		return text, true
	}
	if bracket := strings.Index(text, "]:"); bracket >= 0 && !strings.Contains(text[:bracket], "/") {
		return text[:bracket+1], true
	}
	colon := strings.IndexByte(text, ':')
	if colon <= 0 || strings.Contains(text[:colon], "/") {
		return "", false
	}
	// One letter is a drive of Windows.
	return text[:colon], colon > 1
}

// sftp can read and write whatever its session is told to.
func (r *reader) sftp(c command) {
	options, rest, ok := sftpOptions.leading(c.args())
	r.checkSSHOptions(without(options, "-R"))
	if !ok || len(rest) == 0 {
		r.found.unresolved(noMachine)
		return
	}
	destination := rest[0]
	host, hasPath := remoteEnd(destination.text)
	if hasPath && !strings.Contains(destination.text, "://") {
		destination.text = host
	}
	machine, ok := sshHost(destination)
	if !ok {
		r.found.unresolved(noMachine)
		return
	}
	r.at(machine).changes()
}

func (r *reader) sshCopyID(c command) {
	options, rest, ok := grammar{short: "iopFt"}.all(c.args())
	r.checkSSHOptions(options)
	if !ok || len(rest) != 1 {
		r.found.unresolved(noMachine)
		return
	}
	machine, ok := sshHost(rest[0])
	if !ok {
		r.found.unresolved(noMachine)
		return
	}
	r.at(machine).changes()
}
