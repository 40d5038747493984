package cli

import (
	"os"
	"os/user"
	"runtime"

	"golang.org/x/term"
)

// ownTerminal reports whether f is a terminal and this process has one to itself, which a program that an agent runs in
// the background has not. An agent that is set on it can make a terminal: this tells accident from intent, no more.
func ownTerminal(f *os.File) bool {
	if !term.IsTerminal(int(f.Fd())) {
		return false
	}
	if runtime.GOOS == "windows" {
		return true
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	return err == nil && tty.Close() == nil
}

// person names who runs the command: as the settings say, and as the system does.
func (a *app) person() (string, error) {
	r := a.reader()
	name := r.text(setHuman)
	if err := r.err(); err != nil {
		return "", err
	}
	account := "an unknown account"
	if u, err := user.Current(); err == nil {
		account = u.Username
	}
	if name == "" {
		return account, nil
	}
	return name + " (" + account + ")", nil
}
