package shell

import (
	"slices"
	"strings"
)

// cloud is a program that changes machines which its command line does not name.
type cloud struct {
	// reads are the words with which it only reads. One that ends with a dash stands for all that begin with it.
	reads string
	// groups are words in front of the verb. Where they are known, any other word is the verb; else the verb is one of
	// the first words.
	groups string
}

const infrastructureReads = "plan show validate fmt output version providers graph init get list help"

var clouds = map[string]*cloud{
	"terraform":      {infrastructureReads, "state workspace providers"},
	"tofu":           {infrastructureReads, "state workspace providers"},
	"terragrunt":     {infrastructureReads, "state workspace providers"},
	"helm":           {"list ls get status history show search template lint version env pull package verify help", "repo dependency dep plugin"},
	"eksctl":         {"get version info help", "utils"},
	"aws":            {reads: "describe- list- get- ls help"},
	"gcloud":         {reads: "list describe info version help"},
	"gsutil":         {reads: "ls stat version help"},
	"az":             {reads: "list show version list- get-"},
	"azcopy":         {reads: "list env"},
	"doctl":          {reads: "list get"},
	"oci":            {reads: "list get"},
	"hcloud":         {reads: "list describe version"},
	"linode-cli":     {reads: "list view"},
	"openstack":      {reads: "list show"},
	"ibmcloud":       {reads: "list version"},
	"scw":            {reads: "list get version"},
	"acli":           {reads: "vm.list vm.get"},
	"pvecm":          {reads: "status nodes"},
	"docker-machine": {reads: "ls status version"},
}

// changesSomewhere are words that no reading command has, in case the name of a thing is one of the reading words.
var changesSomewhere = set(`apply destroy delete create start stop reset restart reboot update set ssh scp run-command invoke remove
	add attach detach resize terminate import taint untaint rm mv cp sync push up down deploy rollback upgrade install uninstall
	deallocate redeploy exec console new replace edit`)

var cloudOptions = grammar{long: "--region --profile --output --endpoint-url --query --project --zone --account --subscription --resource-group --namespace --kube-context --kubeconfig --format --filter", short: "ong"}

func (r *reader) cloud(c command) {
	name, _ := programName(c.words[0])
	args := c.args()
	if len(args) == 0 || len(args) == 1 && (args[0].text == "--version" || args[0].text == "--help") {
		return
	}
	_, operands, ok := cloudOptions.all(args)
	if !ok || !clouds[name].isRead(operands) {
		r.found.unresolved(notNamed)
	}
}

// verbDepth is behind which word only names of things stand.
const verbDepth = 4

func (c *cloud) isRead(operands []word) bool {
	if c.groups != "" && len(operands) > 1 && isOneOf(operands[0].text, c.groups) {
		operands = operands[1:]
	}
	reads := false
	for i, w := range operands {
		switch {
		case changesSomewhere[w.text], i < verbDepth && !reads && !w.known():
			return false
		case i < verbDepth && isOneOf(w.text, c.reads):
			reads = true
		case c.groups != "" && i == 0:
			return false
		}
	}
	return reads
}

func isOneOf(text, words string) bool {
	for word := range strings.FieldsSeq(words) {
		if text == word || strings.HasSuffix(word, "-") && strings.HasPrefix(text, word) {
			return true
		}
	}
	return false
}

var curlOptions = grammar{
	short: "AbcCdDeEFhHKmoPQrTtuUwxXyYz",
	long: `--url --request --data --data-raw --data-binary --data-urlencode --data-ascii --json --form --form-string --upload-file
		--config --header --user --user-agent --output --output-dir --referer --cookie --cookie-jar --max-time --connect-timeout
		--retry --retry-delay --retry-max-time --proxy --cacert --capath --cert --key --resolve --connect-to --interface --write-out
		--range --limit-rate --dump-header --max-redirs --ciphers --tls-max --dns-servers --unix-socket --quote --noproxy --proto
		--oauth2-bearer --aws-sigv4 --netrc-file --pass --stderr --trace --trace-ascii`,
}

// curl is local when it only fetches: see the package's comment.
func (r *reader) curl(c command) {
	options, urls, ok := curlOptions.all(quotedAsOperands(c.args()))
	method, given := valueOf(options, "-X", "--request")
	sends := !ok || has(options, "-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--data-ascii", "--json", "-F",
		"--form", "--form-string", "-T", "--upload-file", "-K", "--config", "-Q", "--quote", "-t", "--telnet-option", "--next") && !has(options, "-G", "--get")
	if given {
		sends = sends || !slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, strings.ToUpper(method.text))
	}
	if url, ok := valueOf(options, "--url"); ok {
		urls = append(urls, url)
	}
	if r.request(urls, sends); !r.onAgents() || has(options, "-o", "-O", "--output", "--remote-name", "-c", "--cookie-jar", "-D", "--dump-header") {
		r.changes()
	}
}

var wgetOptions = grammar{
	short: "aBDeiIlQtTURwXoOPA",
	long: `--post-data --post-file --method --body-data --body-file --output-document --output-file --directory-prefix --header --user
		--password --user-agent --tries --timeout --wait --input-file --execute --level --accept --reject`,
}

func (r *reader) wget(c command) {
	options, urls, ok := wgetOptions.all(quotedAsOperands(c.args()))
	r.request(urls, !ok || has(options, "--post-data", "--post-file", "--method", "--body-data", "--body-file", "-e", "--execute", "--use-askpass"))
	r.changes()
}

// quotedAsOperands takes a word in quotes that begins with something unknown for an address. Nobody keeps the options
// of a request in one variable without its splitting.
func quotedAsOperands(words []word) []word {
	all := slices.Clone(words)
	for i, w := range all {
		if !w.splits && strings.HasPrefix(w.text, string(hole)) {
			all[i].text = "https://" + w.text
		}
	}
	return all
}

func (r *reader) request(urls []word, sends bool) {
	for _, url := range urls {
		scheme, rest, ok := strings.Cut(url.text, "://")
		if !ok {
			scheme, rest = "http", url.text
		}
		switch lower := strings.ToLower(scheme); {
		case lower == "file":
			continue
		case lower != "http" && lower != "https" && lower != "ftp" && lower != "ftps":
			r.found.unresolved(notNamed)
		}
		if sends && !ownAddress(rest) {
			r.found.unresolved("a request sends something to another machine, and what it changes is not known")
		}
	}
	if sends && len(urls) == 0 {
		r.found.unresolved(notNamed)
	}
}

// ownAddress reports whether the rest of a URL begins with the agent's own machine.
func ownAddress(rest string) bool {
	end := strings.IndexAny(rest, "/?#\\")
	if end >= 0 {
		rest = rest[:end]
	}
	if strings.Contains(rest, "@") {
		return false
	}
	switch withoutPort(rest) {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}
