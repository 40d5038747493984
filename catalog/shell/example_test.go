package shell_test

import (
	"fmt"

	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
)

func ExampleRead() {
	r := shell.Read(`cd app && make && ssh db01 uptime && sudo -u deploy sh -c 'scp app.tgz web01:/srv/'`, shell.Bash)
	for _, m := range r.Machines {
		fmt.Println(m.Name, "changed:", m.Changed)
	}

	r = shell.Read(`ssh "$HOST" reboot`, shell.Bash)
	fmt.Println(r.Unresolved)
	// Output:
	// db01 changed: false
	// web01 changed: true
	// a program that reaches another machine is not told which one in plain words
}
