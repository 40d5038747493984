package install

// Status tells how one hook is installed.
type Status struct {
	Host  string
	Scope Scope
	Path  string
	// Entries are all places at which the file runs our hook. Empty means that it is not installed.
	Entries []Entry
	// Missing are events on which the hook should run and does not, although it is installed.
	Missing []string
	// Warnings tell what keeps the host from running it.
	Warnings []string
}

// Drift tells what is otherwise than an installation would write it.
func (s Status) Drift() []string {
	var drift []string
	for _, event := range s.Missing {
		drift = append(drift, "no hook runs on "+event)
	}
	seen := map[string]bool{}
	for _, e := range s.Entries {
		for _, d := range e.Drift {
			drift = append(drift, e.Event+": "+d)
		}
		if seen[e.Event] {
			drift = append(drift, e.Event+": the hook runs more than once")
		}
		seen[e.Event] = true
	}
	return drift
}

// Inspect tells how a hook is installed. The hook's binary may be empty; one of another name than zerto-rewind is found
// only by it.
func Inspect(k Hook, p Place) (Status, error) {
	h, path, err := locate(k, p)
	if err != nil {
		return Status{}, err
	}
	s := Status{Host: k.Host, Scope: k.Scope, Path: path}
	target, err := follow(path)
	if err != nil {
		return s, err
	}
	data, err := readFile(target)
	if err != nil || data == nil {
		return s, err
	}
	if s.Entries, err = h.entries(path, data, k.Binary, p); err != nil || len(s.Entries) == 0 {
		return s, err
	}
	for _, event := range h.events {
		runs := false
		for _, e := range s.Entries {
			runs = runs || e.Event == event
		}
		if !runs {
			s.Missing = append(s.Missing, event)
		}
	}
	if h.form != script {
		if d, err := parseDocument(path, data); err == nil {
			s.Warnings = h.warnings(d)
		}
	}
	return s, nil
}
