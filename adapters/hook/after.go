package hookadapter

import (
	"context"
	"errors"
	"io"
	"slices"
)

// After reads what a host tells after a tool has run, and calls ran with the host's session and its name of the call if
// that is proof of a person's yes: the host is one that asks, in a mode in which it does (hooks 1.7 and 1.8). Any other
// input is an error or tells nothing. What ran returns is returned. An After that fails leaves things as they are: the
// person is asked again.
//
// Whoever can start the program can tell it of a call that never ran, an agent with a shell included. So the yes is worth
// as much as the host's word.
func After(ctx context.Context, stdin io.Reader, c Config, ran func(ctx context.Context, session, call string) error) (err error) {
	ctx, cancel := c.limited(ctx)
	defer cancel()
	defer func() {
		if recover() != nil {
			err = errors.New("the hook failed")
		}
	}()
	in := readInput(stdin, maxInput)
	defer in.drain(ctx, drainGrace)
	var got reading
	select {
	case got = <-in.value:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if got.err != nil {
		return got.err
	}
	p, err := parsePayload(got.text)
	if err != nil {
		return err
	}
	h, err := p.recognise(c.Host)
	switch {
	case err != nil:
		return err
	case h.name != HostClaude:
		return errors.New("of what " + h.title + " tells after a tool has run, nothing shows that a person was asked")
	case !slices.Contains([]string{"PostToolUse", "PostToolUseFailure"}, p.text("hook_event_name")):
		return errors.New("this hook was called for an event that does not come after a tool")
	}
	call, err := p.claudeCall()
	if err != nil || !h.mayAsk(call, c.Questions) || call.session == "" || call.id == "" {
		return err
	}
	return ran(ctx, call.session, call.id)
}
