// Package shell reads the command line of an agent's shell tool: which machines it addresses, and whether it only reads
// there.
//
//	r := shell.Read(`ssh web01 "systemctl restart nginx"`, shell.Bash)
//	// r.Machines[0] == shell.Machine{Name: "web01", Changed: true}
//
// A line for Bash is parsed, never matched: quotes, full paths, wrappers such as sudo, env and xargs, nested shells,
// substitutions, here-documents and loops over literal lists are followed to the program that runs in the end. A line for
// PowerShell is split by a small reader of its own, which gives up on what it is not sure of. Whatever a line leaves
// open is [Reading.Unresolved]: a host in a variable, code that another program writes, a cluster or cloud in which the
// machines are not named.
//
// # What counts as reading
//
// A machine is only read if every program that runs there is in a short list of those that write nothing, with the
// options that make some of them write left out, and no output goes into a file. Every other program changes it. Sudo
// makes no difference. A line that makes a recovery point, such as "qm snapshot", counts as reading. What another machine
// is given to run is read as if its login shell were one in the tradition of the Bourne shell.
//
// # The agent's own machine
//
// A line that addresses no other machine is local, whatever it does: "make", "git push" and "./deploy.sh" are. What a
// script or a program does by itself is not in its command line. So this is a guard rail for agents that mean well, not
// a sandbox. [Reader.LocalVM] makes the agent's own machine one of those to be guarded.
//
// An HTTP request by curl or wget that only fetches is local: HTTP defines it as safe, and agents fetch all the time. One
// that sends something is unresolved unless it goes to the agent's own machine: behind an address may be a hypervisor,
// whose machines the line does not name.
//
// Code in another language on the command line, such as that of "python -c", is local unless it mentions a program that
// reaches other machines.
package shell
