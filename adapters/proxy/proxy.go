package proxyadapter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// Config is how a proxy judges.
type Config struct {
	// Server is the key under which hosts and the catalogue know the MCP server. [Run] requires it.
	Server string
	// Gate gives the verdict on each call, and is asked for it anew for each. It is required.
	Gate func() (*gate.Gate, error)
	// Protect makes the guard that a person asked for when asked. Without it, that answer is not offered.
	Protect func(ctx context.Context, vms []string, action string) (rewind.GuardRecord, error)
	// Answered is told of each yes before the call runs; an error refuses the call. It may be nil.
	Answered func(ctx context.Context, a Answer) error
	// Observe is told of the definitions of tools that the server lists, one page at a time. It may be nil.
	Observe func(tools []json.RawMessage)
	// Heartbeat is how often a client that asked for progress hears that its call is held; zero means 5 s.
	Heartbeat time.Duration
	// Patience is how long a person's answer is waited for; zero means 10 min.
	Patience time.Duration
}

// Answer is a person's yes to a call, as the client relayed it: nothing proves that a person gave it.
type Answer struct {
	Call gate.Call
	// Targets are the machines that the call names, if that is known.
	Targets []string
	// Guard is the record of the guard that was made on the way, nil if the call runs without one.
	Guard *rewind.GuardRecord
}

// Streams are the two ends of a connection, one JSON-RPC message in each line.
type Streams struct {
	In  io.Reader
	Out io.Writer
}

// ErrServerEnded is returned by [Run] when the MCP server ended first. Its callers were told.
var ErrServerEnded = errors.New("the MCP server ended while its client was still there")

// Run passes messages between a host and an MCP server until one of them ends or ctx does. It returns nil when the host
// ended first: then it has closed the server's input, and read what the server still had to say. What reads an In may
// stay behind if that does not return. The server's Out is closed if it can be.
func Run(ctx context.Context, host, server Streams, config Config) error {
	if config.Server == "" || config.Gate == nil {
		return errors.New("proxyadapter: Run needs the server's name and a gate")
	}
	if config.Heartbeat <= 0 {
		config.Heartbeat = 5 * time.Second
	}
	if config.Patience <= 0 {
		config.Patience = 10 * time.Minute
	}
	sealer, err := gate.NewSealer(config.Patience)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &proxy{
		Config: config, sealer: sealer, session: rand.Text(),
		toHost: &lineWriter{to: host.Out}, toServer: &lineWriter{to: server.Out},
		held: map[string]*heldCall{}, pending: map[string]pending{}, questions: map[string]chan json.RawMessage{},
		approved: map[string]string{},
	}
	closeInput := func() {
		if c, ok := server.Out.(io.Closer); ok {
			_ = c.Close() // its reader may have gone first
		}
	}
	hostEnded, serverEnded := make(chan error, 1), make(chan error, 1)
	go func() { hostEnded <- p.fromHost(ctx, newLineReader(host.In)) }()
	go func() { serverEnded <- p.fromServer(newLineReader(server.In)) }()

	serverGone := func(err error) error {
		cancel(ErrServerEnded)
		withinLimit(func() {
			p.calls.Wait()
			p.failPending(err)
		})
		return errors.Join(ErrServerEnded, err)
	}
	select {
	case err = <-hostEnded:
		if errors.Is(err, errToServer) { // the host is still there, and waits for answers
			defer closeInput()
			return serverGone(err)
		}
		cancel(errors.New("the host ended"))
		withinLimit(p.calls.Wait)
		closeInput()
		select {
		case readErr := <-serverEnded:
			return errors.Join(err, readErr)
		case <-time.After(closingLimit):
			return err
		}
	case err = <-serverEnded:
		return serverGone(err)
	case <-ctx.Done():
		withinLimit(p.calls.Wait)
		closeInput()
		return context.Cause(ctx)
	}
}

// closingLimit is how long a server may take to end after its input did, and a host to take what it is still told.
const closingLimit = 10 * time.Second

// withinLimit does not wait for ever for what has to be written to a host that reads no more.
func withinLimit(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(closingLimit):
	}
}

type proxy struct {
	Config

	sealer           *gate.Sealer
	session          string
	toHost, toServer *lineWriter
	calls            sync.WaitGroup

	mu        sync.Mutex
	client    capabilities // of a client of the legacy era
	held      map[string]*heldCall
	pending   map[string]pending
	questions map[string]chan json.RawMessage // ours to the client, by id
	approved  map[string]string               // what may run when the server's own state comes back
}

// pending is a request that the server has been sent and not answered.
type pending struct {
	method string
	// guard is the change id of the guard that let a call run.
	guard string
	// subject is what a person said yes to.
	subject string
}

func (p *proxy) fromHost(ctx context.Context, lines *lineReader) error {
	for {
		line, err := lines.next()
		switch {
		case errors.Is(err, errTooLong):
			p.refuse("", codeInvalidRequest, err)
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading from the host: %w", err)
		}
		m, err := parseMessage(line)
		if err != nil {
			p.refuse(m.id, codeInvalidRequest, err)
			continue
		}
		if err := p.route(ctx, m); err != nil {
			return err
		}
	}
}

// route sends a message of the host where it belongs.
func (p *proxy) route(ctx context.Context, m message) error {
	switch {
	case m.isCall && m.id == "":
		return nil // nobody could be told what became of it
	case m.isCall:
		p.hold(ctx, m)
		return nil
	case m.method == methodInitialize:
		p.learnClient(m.params)
	case m.method == methodCancelled && p.cancelHeld(m.params):
		return nil
	case m.method == "" && p.answerQuestion(m):
		return nil
	}
	if m.method != "" && m.id != "" {
		p.mu.Lock()
		p.pending[m.key] = pending{method: m.method}
		p.mu.Unlock()
	}
	return p.forward(m.line)
}

var errToServer = errors.New("writing to the MCP server")

func (p *proxy) forward(line []byte) error {
	if err := p.toServer.write(line); err != nil {
		return fmt.Errorf("%w: %w", errToServer, err)
	}
	return nil
}

func (p *proxy) learnClient(params json.RawMessage) {
	var told struct {
		Capabilities capabilities `json:"capabilities"`
	}
	if json.Unmarshal(params, &told) == nil {
		p.mu.Lock()
		p.client = told.Capabilities
		p.mu.Unlock()
	}
}

// fromServer passes what the server says, and adds to the result of a guarded call which guard it has.
func (p *proxy) fromServer(lines *lineReader) error {
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading from the MCP server: %w", err)
		}
		if err := p.toHost.write(p.seen(line)); err != nil {
			return fmt.Errorf("writing to the host: %w", err)
		}
	}
}

// seen takes note of an answer, and returns the line to pass on.
func (p *proxy) seen(line []byte) []byte {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(line, &m) != nil || len(m.ID) == 0 || m.Method != "" {
		return line
	}
	p.mu.Lock()
	asked, ok := p.pending[idKey(m.ID)]
	delete(p.pending, idKey(m.ID))
	p.mu.Unlock()
	switch {
	case !ok || len(m.Result) == 0:
	case asked.method == methodList:
		p.observe(m.Result)
	case asked.method == methodCall:
		p.remember(asked.subject, m.Result)
		if asked.guard != "" {
			return withGuard(line, asked.guard)
		}
	}
	return line
}

func (p *proxy) observe(result json.RawMessage) {
	var page struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if p.Observe != nil && json.Unmarshal(result, &page) == nil && len(page.Tools) > 0 {
		p.Observe(page.Tools)
	}
}

// metaChangeID is the member of a result's _meta that names the guard of the call.
const metaChangeID = "zerto-rewind/changeId"

func withGuard(line []byte, changeID string) []byte {
	id, err := json.Marshal(changeID)
	if err != nil {
		return line
	}
	added, err := rebuild(line, func(name string, value json.RawMessage) json.RawMessage {
		if name != "result" {
			return value
		}
		found := false
		result, err := rebuild(value, func(name string, value json.RawMessage) json.RawMessage {
			if name != "_meta" {
				return value
			}
			found = true
			meta, err := withMember(value, metaChangeID, id)
			if err != nil {
				return value
			}
			return meta
		})
		if err == nil && !found {
			result, err = withMember(value, "_meta", fmt.Appendf(nil, "{%q:%s}", metaChangeID, id))
		}
		if err != nil {
			return value
		}
		return result
	})
	if err != nil {
		return line
	}
	return added
}

// withMember returns a JSON object with one more member, which replaces one of the same name.
func withMember(object []byte, name string, value json.RawMessage) ([]byte, error) {
	out, err := rebuild(object, func(other string, v json.RawMessage) json.RawMessage {
		if other == name {
			return nil
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	out = out[:len(out)-1]
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(fmt.Appendf(out, "%q:%s", name, value), '}'), nil
}

// failPending tells the host of every call that will get no answer any more.
func (p *proxy) failPending(cause error) {
	p.mu.Lock()
	ids := make([]string, 0, len(p.pending))
	for id := range p.pending {
		ids = append(ids, id)
	}
	clear(p.pending)
	p.mu.Unlock()
	for _, id := range ids {
		text := "the MCP server ended before it answered; whether it did what it was asked is not known"
		if cause != nil {
			text += " (" + cause.Error() + ")"
		}
		p.fail(id, codeServerEnded, text)
	}
}

// refuse answers a message that was not passed on.
func (p *proxy) refuse(id string, code int, cause error) {
	p.fail(id, code, "the message was not passed on: "+cause.Error())
}

// fail answers with an error of JSON-RPC. Without an id it says that none could be read.
func (p *proxy) fail(id string, code int, text string) {
	if id == "" {
		id = "null"
	}
	_ = p.toHost.write(encode(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   any             `json:"error"`
	}{"2.0", json.RawMessage(id), map[string]any{"code": code, "message": "zerto-rewind: " + text}}))
}

// encode writes what always has a JSON form.
func encode(v any) []byte {
	data, _ := json.Marshal(v)
	return data
}
