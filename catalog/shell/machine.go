package shell

import (
	"net/netip"
	"strings"
	"unicode"
)

// Why the machine that a program reaches is not known.
const (
	noMachine      = "a program that reaches another machine is not told which one in plain words"
	strangeOptions = "a program that reaches other machines has options that may aim it elsewhere"
	notNamed       = "a program acts on machines that the command line does not name"
	undoes         = "the command line deletes or rolls back recovery points, which no guard can bring back"
)

// hostName reads the name or address of one machine. The agent's own is none: what listens there may be a way to
// another one.
func hostName(text string) (string, bool) {
	text = strings.TrimSuffix(text, ".")
	if address, err := netip.ParseAddr(text); err == nil {
		return text, address.Zone() == "" && !address.IsLoopback() && !address.IsUnspecified() && !address.IsMulticast()
	}
	if strings.Contains(text, " ") || strings.HasPrefix(strings.ToLower(text), "localhost") {
		return "", false
	}
	// Resolvers take "127.1" and a bare number for addresses.
	if !strings.ContainsFunc(text, unicode.IsLetter) {
		return "", false
	}
	return vmName(text)
}

// vmName reads what a hypervisor calls one machine, which may hold blanks.
func vmName(text string) (string, bool) {
	if text == "" || strings.TrimSpace(text) != text || text[0] == '-' {
		return "", false
	}
	if strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_. ()#+", r)
	}) {
		return "", false
	}
	return text, strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// sshHost reads what OpenSSH takes for a destination: [user@]host or ssh://[user@]host[:port].
func sshHost(w word) (string, bool) {
	if !w.known() {
		return "", false
	}
	text := w.text
	for _, scheme := range []string{"ssh://", "scp://", "sftp://", "rsync://"} {
		if rest, ok := strings.CutPrefix(text, scheme); ok {
			text, _, _ = strings.Cut(rest, "/")
			return hostName(withoutPort(text[strings.LastIndex(text, "@")+1:]))
		}
	}
	return hostName(strings.Trim(text[strings.LastIndex(text, "@")+1:], "[]"))
}

func withoutPort(text string) string {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		host, _, _ := strings.Cut(inner, "]")
		return host
	}
	host, _, _ := strings.Cut(text, ":")
	return host
}
