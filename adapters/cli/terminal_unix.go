//go:build unix

package cli

const controllingTerminal = "/dev/tty"
