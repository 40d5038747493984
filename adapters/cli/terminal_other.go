//go:build !unix

package cli

const controllingTerminal = "CONIN$"
