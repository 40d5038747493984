package ledger

// WithPragmas has SQLite told more on each connection.
func (o Options) WithPragmas(pragmas ...string) Options {
	o.pragmas = pragmas
	return o
}
