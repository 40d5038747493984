package proxyadapter

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// Intercept judges one call as an interceptor of Docker's MCP gateway that runs before tools (mcp 5.1): it reads the
// request from in and writes nothing when the call may run, or else the result that the gateway answers with. The gateway
// lets no call run whose interceptor fails, so an error denies as well. A request for another method is an error.
//
// The gateway does not say which server a tool belongs to. It is config.Server, or, if that is empty, whatever the
// catalogue makes of the tool's name.
func Intercept(ctx context.Context, in io.Reader, out io.Writer, config Config) error {
	if config.Gate == nil {
		return errors.New("proxyadapter: Intercept needs a gate")
	}
	text, err := io.ReadAll(io.LimitReader(in, maxLine+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxLine:
		return errTooLong
	}
	m, err := parseMessage(text)
	if err != nil {
		return fmt.Errorf("the request was refused: %w", err)
	}
	if !m.isCall {
		return errors.New("the request is not a call of a tool")
	}
	c, err := parseCall(m.params)
	if err != nil {
		return fmt.Errorf("the parameters of the call were refused: %w", err)
	}
	p := &proxy{Config: config}
	answer := p.intercepted(ctx, c)
	if answer == nil {
		return nil
	}
	_, err = out.Write(append(encode(answer), '\n'))
	return err
}

// intercepted returns nil for a call that may run, or else the result in its place.
func (p *proxy) intercepted(ctx context.Context, c toolCall) (answer any) {
	defer func() {
		if recover() != nil {
			answer = p.denied(c, "The interceptor failed while it judged this call. It was not executed.").answer
		}
	}()
	g, err := p.Gate()
	if err != nil {
		return p.denied(c, fmt.Sprintf("Nothing could judge this call (%v). It was not executed.", err)).answer
	}
	name := catalog.Name{Server: p.Server, Tool: c.name}
	if p.Server == "" {
		name, _ = g.Catalog().ParseToolName(c.name) // a name that was split by guess is unknown
	}
	switch v := g.Decide(ctx, gate.Call{Name: name, Args: c.args, Host: "docker-mcp-gateway"}); v.Decision {
	case gate.Allow, gate.NoOpinion:
		return nil
	case gate.Ask:
		return p.cannotAsk(c, v).answer
	default:
		return p.denied(c, v.Reason).answer
	}
}
