package shell

import (
	"slices"
	"strings"
)

var ansibleOptions = grammar{
	short: "aBeffiIlmMPtTuUc",
	long: `--args --background --extra-vars --forks --inventory --inventory-file --limit --module-name --module-path --poll --tree
		--timeout --user --connection --become-user --become-method --private-key --key-file --ssh-common-args --ssh-extra-args
		--scp-extra-args --sftp-extra-args --vault-id --vault-password-file --tags --skip-tags --start-at-task --playbook-dir
		--task-timeout --become-password-file --connection-password-file`,
}

// ansible reads a run of one module on the hosts of a pattern.
func (r *reader) ansible(c command) {
	options, operands, ok := ansibleOptions.all(c.args())
	if has(options, "--list-hosts", "--version", "--help", "-h") && ok {
		return
	}
	if !ok || len(operands) != 1 {
		r.found.unresolved(notNamed)
		return
	}
	r.checkAnsibleOptions(options)
	module, given := valueOf(options, "-m", "--module-name")
	name := module.text[strings.LastIndex(module.text, ".")+1:]
	if given && readingModules[name] && module.known() {
		r.pattern(operands[0], func(*reader) {})
		return
	}
	arguments, _ := valueOf(options, "-a", "--args")
	r.pattern(operands[0], func(there *reader) {
		if given && name != "command" && name != "shell" && name != "raw" || arguments.text == "" {
			there.changes()
			return
		}
		there.stdin = nil
		there.code(arguments.text, Bash)
	})
	if limit, given := valueOf(options, "-l", "--limit"); given && !limit.known() {
		r.found.unresolved(notNamed)
	}
}

var readingModules = set("ping setup gather_facts debug stat service_facts package_facts slurp getent wait_for wait_for_connection win_ping find")

func (r *reader) playbook(c command) {
	options, _, ok := ansibleOptions.all(c.args())
	if ok && has(options, "--list-hosts", "--list-tasks", "--list-tags", "--syntax-check", "--version", "--help", "-h") {
		return
	}
	limit, given := valueOf(options, "-l", "--limit")
	if !ok || !given {
		r.found.unresolved(notNamed)
		return
	}
	r.checkAnsibleOptions(options)
	r.pattern(limit, (*reader).changes)
	// A play may delegate a task to a machine that no limit names; that is the playbook's text, not this line's.
}

// checkAnsibleOptions looks for variables, which can change the address behind a host's name.
func (r *reader) checkAnsibleOptions(options []option) {
	for _, o := range options {
		switch o.name {
		case "--ssh-common-args", "--ssh-extra-args", "--scp-extra-args", "--sftp-extra-args":
			r.found.unresolved(strangeOptions)
		case "-e", "--extra-vars":
			if !o.value.known() || strings.HasPrefix(o.value.text, "@") || strings.Contains(o.value.text, "ansible_") {
				r.found.unresolved(strangeOptions)
			}
		}
	}
}

// pattern reads an Ansible host pattern. A bare word may be the name of a group, and so of many machines.
func (r *reader) pattern(w word, act func(there *reader)) {
	if !w.known() {
		r.found.unresolved(noMachine)
		return
	}
	for text := range strings.SplitSeq(strings.TrimSuffix(w.text, ","), ",") {
		if !r.step(1) {
			return
		}
		machine, ok := hostName(text)
		if ok && strings.ContainsAny(strings.Trim(machine, "."), ".:") {
			act(r.at(machine))
			continue
		}
		var group Reading
		aside := *r
		aside.found = &group
		act(aside.at("group"))
		if group.Unresolved != "" || group.Machines[0].Changed || len(group.Machines) > 1 {
			r.found.unresolved("a host pattern may stand for a group of machines: full host names and addresses do not")
		}
	}
}

var kubectlOptions = grammar{
	short: "nsvflocpL",
	long: `--namespace --context --cluster --user --kubeconfig --server --token --as --as-group --as-uid --request-timeout --cache-dir
		--certificate-authority --client-certificate --client-key --tls-server-name --profile --profile-output --v --vmodule
		--filename --selector --output --container --field-selector --tail --since --since-time --sort-by`,
}

var kubectlReads = set(`get describe logs top explain api-resources api-versions version cluster-info diff events wait options
	completion help kustomize`)

// kubectl acts on pods and nodes, whose machines its command line does not name.
func (r *reader) kubectl(c command) {
	own, inside := cutAt(c.args(), "--")
	options, operands, ok := kubectlOptions.all(own)
	switch {
	case !ok:
		r.found.unresolved(notNamed)
		return
	case len(operands) == 0:
		return
	}
	verb, second := operands[0], ""
	if len(operands) > 1 {
		second = operands[1].text
	}
	switch verb.text + " " + second {
	case "config view", "config current-context", "config get-contexts", "config get-clusters", "config get-users", "auth can-i",
		"auth whoami", "rollout status", "rollout history", "plugin list":
		return
	case "config use-context", "config set-context", "config use":
		r.changes()
		return
	}
	if verb.text == "exec" && len(inside) > 0 {
		var found Reading
		pod := *r
		pod.found, pod.stdin = &found, nil
		pod.at("pod").run(command{words: inside})
		if found.Unresolved == "" && len(found.Machines) == 1 && !found.Machines[0].Changed {
			return
		}
	}
	if !kubectlReads[verb.text] || has(options, "--raw") && verb.text != "get" {
		r.found.unresolved(notNamed)
	}
}

// cutAt splits words at the first that is exactly the separator.
func cutAt(words []word, separator string) (before, after []word) {
	if i := slices.IndexFunc(words, func(w word) bool { return w.text == separator }); i >= 0 {
		return words[:i], words[i+1:]
	}
	return words, nil
}

var (
	dockerOptions = grammar{short: "Hcl", long: "--host --context --config --log-level --tlscacert --tlscert --tlskey --url --connection --identity"}
	dockerReads   = set("ps images logs inspect version info stats top events diff port history search df list ls help")
)

// docker acts on the agent's own machine unless it is told of another.
func (r *reader) docker(c command) {
	options, rest, ok := dockerOptions.leading(c.args())
	if !ok {
		r.found.unresolved(noMachine)
		return
	}
	reads := len(rest) == 0 || dockerReads[rest[0].text]
	host, aimed := valueOf(options, "-H", "--host", "--url")
	switch {
	case aimed && strings.HasPrefix(host.text, "unix://"), !aimed && !has(options, "-c", "--context", "--connection"):
		if !reads {
			r.changes()
			r.startsOther("docker", c)
		}
	case aimed && host.known() && (strings.HasPrefix(host.text, "ssh://") || strings.HasPrefix(host.text, "tcp://")):
		machine, ok := sshHost(plain("ssh://" + host.text[len("ssh://"):]))
		if !ok {
			r.found.unresolved(noMachine)
			return
		}
		if there := r.at(machine); !reads {
			there.changes()
		}
	case !reads:
		r.found.unresolved(noMachine)
	}
}

// What a command of a hypervisor does with the machine that it names.
var (
	virshMachine = set(`start shutdown destroy reboot reset suspend resume undefine setvcpus setmem setmaxmem edit migrate save
		managedsave managedsave-remove autostart blkdeviotune blockcommit blockcopy blockjob blockpull blockresize change-media
		attach-device attach-disk attach-interface detach-device detach-device-alias detach-disk detach-interface domrename
		dompmsuspend dompmwakeup domfsfreeze domfsthaw domfstrim domif-setlink inject-nmi metadata memtune numatune
		qemu-agent-command qemu-monitor-command schedinfo send-key send-process-signal set-user-password set-user-sshkeys
		update-device vcpupin console dump guestvcpus setvcpu`)
	virshReads = set(`list dominfo domstate domstats dumpxml domblklist domblkinfo domblkstat domblkerror domifaddr domiflist domifstat
		domif-getlink domhostname domid domname domuuid domjobinfo domcontrol domtime domdisplay dommemstat domfsinfo guestinfo
		vcpuinfo vcpucount vncdisplay nodeinfo nodecpustats nodememstats nodedev-list version uri hostname sysinfo capabilities
		freecell help snapshot-list snapshot-info snapshot-current snapshot-dumpxml snapshot-parent checkpoint-list checkpoint-info
		net-list net-info net-dumpxml net-dhcp-leases pool-list pool-info pool-dumpxml vol-list vol-info vol-path vol-dumpxml
		iface-list iface-dumpxml secret-list`)
	virshMarks = set("snapshot-create snapshot-create-as checkpoint-create checkpoint-create-as")
	virshUndo  = set("snapshot-delete snapshot-revert checkpoint-delete")
)

func (r *reader) virsh(c command) {
	_, rest, ok := grammar{short: "cdleEk", long: "--connect --debug --log --escape"}.leading(c.args())
	if !ok {
		r.found.unresolved(noMachine)
		return
	}
	if len(rest) == 0 {
		r.shellOnStdin()
		return
	}
	verb := rest[0].text
	switch {
	case virshReads[verb] && rest[0].known(), virshMarks[verb]:
	case virshUndo[verb]:
		r.found.unresolved(undoes)
	case virshMachine[verb]:
		options, operands, ok := grammar{long: "--domain"}.all(rest[1:])
		domain, named := valueOf(options, "--domain")
		if !named && len(operands) > 0 {
			domain = operands[0]
		}
		r.vm(domain, ok)
	default:
		r.found.unresolved(notNamed)
	}
}

// vm notes that a machine of a hypervisor is changed.
func (r *reader) vm(name word, ok bool) {
	machine, isName := vmName(name.text)
	if !ok || !isName || !name.known() {
		r.found.unresolved(noMachine)
		return
	}
	r.at(machine).changes()
}

var (
	proxmoxReads = set("list status config showcmd pending listsnapshot help cpusets")
	proxmoxPairs = set("guest disk cloudinit agent")
)

func (r *reader) proxmox(c command) {
	args := c.args()
	if len(args) == 0 {
		return
	}
	verb := args[0].text
	args = args[1:]
	switch {
	case !c.args()[0].known():
		r.found.unresolved(noMachine)
		return
	case proxmoxReads[verb] || verb == "snapshot":
		return
	case verb == "rollback" || verb == "delsnapshot":
		r.found.unresolved(undoes)
		return
	case proxmoxPairs[verb] && len(args) > 0 && !isNumber(args[0].text):
		args = args[1:]
	}
	if len(args) == 0 || !isNumber(args[0].text) {
		r.found.unresolved(noMachine)
		return
	}
	r.vm(args[0], true)
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// govc names machines as operands of few commands, and behind -vm for the others.
func (r *reader) govc(c command) {
	args := c.args()
	if len(args) == 0 {
		return
	}
	verb := args[0].text
	args = args[1:]
	group, action, _ := strings.Cut(verb, ".")
	switch {
	case !c.args()[0].known():
		r.found.unresolved(noMachine)
	case govcReads[verb], govcReads["."+action] && group != "guest" || group == "guest" && guestReads[action]:
	case verb == "snapshot.create":
	case verb == "snapshot.remove" || verb == "snapshot.revert":
		r.found.unresolved(undoes)
	case verb == "vm.power" || verb == "vm.destroy" || verb == "vm.unregister" || verb == "vm.markastemplate":
		named := false
		for _, w := range args {
			if !strings.HasPrefix(w.text, "-") {
				named = true
				r.inventoryPath(w)
			} else if strings.HasPrefix(w.text, "-vm") {
				r.found.unresolved(noMachine)
			}
		}
		if !named {
			r.found.unresolved(noMachine)
		}
	default:
		r.govcByOption(args)
	}
}

var (
	govcReads  = set("about ls find tree events logs version env .info .ls .find .tree .get .query .sample .usage")
	guestReads = set("ls ps df getenv download")
)

func (r *reader) govcByOption(args []word) {
	for i, w := range args {
		option, value, attached := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
		switch {
		case option != "vm" || !strings.HasPrefix(w.text, "-"):
		case attached:
			r.inventoryPath(word{text: value, splits: w.splits})
			return
		case i+1 < len(args):
			r.inventoryPath(args[i+1])
			return
		}
	}
	r.found.unresolved(notNamed)
}

// inventoryPath reads the place of a machine in vCenter's inventory.
func (r *reader) inventoryPath(w word) {
	w.text = w.text[strings.LastIndex(w.text, "/")+1:]
	r.vm(w, true)
}
