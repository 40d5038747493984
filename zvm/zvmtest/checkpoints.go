package zvmtest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Checkpoint is a copy of one checkpoint of a VPG's journal.
type Checkpoint struct {
	ID     string
	Time   time.Time // the exact instant; the wire rounds it down to a second
	Tag    string    // "" for an automatic checkpoint
	Tagged bool
}

func (c checkpoint) public() Checkpoint {
	p := Checkpoint{ID: strconv.FormatInt(c.id, 10), Time: c.at, Tagged: c.tag != nil}
	if c.tag != nil {
		p.Tag = *c.tag
	}
	return p
}

// wireRange widens a range to every checkpoint whose time stamp on the wire
// may be inside it.
func wireRange(r span) span {
	wide := span{}
	if !r.from.IsZero() {
		wide.from = r.from.Add(-time.Second)
	}
	if !r.to.IsZero() {
		wide.to = r.to.Add(time.Second)
	}
	return wide
}

// listing yields what the list shows for a range: the bounds are compared
// with the time stamps as they are printed.
func (s *Server) listing(v view, r span) iter.Seq[checkpoint] {
	return func(yield func(checkpoint) bool) {
		for c := range v.within(wireRange(r)) {
			if r.holds(s.wireTime(c.at)) && !yield(c) {
				return
			}
		}
	}
}

func (s *Server) wireTime(t time.Time) time.Time {
	if s.cfg.has(TimestampsInMilliseconds) {
		return t.Truncate(time.Millisecond)
	}
	return t.Truncate(time.Second)
}

func (s *Server) appendStamp(b []byte, t time.Time) []byte {
	t = s.wireTime(t)
	switch {
	case s.cfg.has(LegacyDates):
		b = append(b, "/Date("...)
		return append(strconv.AppendInt(b, t.UnixMilli(), 10), ")/"...)
	case s.cfg.has(TimestampsWithoutFraction):
		return t.AppendFormat(b, "2006-01-02T15:04:05Z")
	}
	return t.AppendFormat(b, milliseconds)
}

// appendCheckpoint writes one CheckpointApi by hand: a journal has half a
// million of them.
func (s *Server) appendCheckpoint(b []byte, c checkpoint) []byte {
	start := len(b)
	b = append(b, `{"CheckpointIdentifier":"`...)
	b = strconv.AppendInt(b, c.id, 10)
	b = append(b, `","TimeStamp":"`...)
	b = s.appendStamp(b, c.at)
	b = append(b, `","Tag":`...)
	kind := "0"
	if c.tag == nil {
		b = append(b, "null"...)
	} else {
		quoted, err := json.Marshal(*c.tag)
		if err != nil {
			quoted = []byte(`""`)
		}
		b = append(b, quoted...)
		kind = s.taggedType()
	}
	b = append(append(append(b, `,"Type":`...), kind...), '}')
	if s.cfg.has(CamelCaseKeys) {
		lowerKeys(b[start:])
	}
	return b
}

// taggedType is the Type of a tagged checkpoint.
func (s *Server) taggedType() string {
	switch {
	case s.cfg.has(TagTypeZero):
		return "0"
	case s.cfg.has(TagTypeTwo):
		return "2"
	}
	return "1"
}

func (s *Server) checkpointJSON(c checkpoint, present bool) json.RawMessage {
	if !present {
		return json.RawMessage("null")
	}
	return s.appendCheckpoint(nil, c)
}

func handleCheckpoints(s *Server, c *call) reply {
	vpg := s.findVPG(c.params["id"])
	if vpg == nil {
		return s.unknownID("VPG", c.params["id"])
	}
	r, err := s.dateRange(c, "startDate", "endDate")
	if err != nil {
		return fail(http.StatusBadRequest, err.Error())
	}
	v := vpg.journal.at(c.now, wireRange(r))
	return reply{stream: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusOK)
		out := bufio.NewWriterSize(w, 64<<10)
		_ = out.WriteByte('[')
		var b []byte
		sent := 0
		for one := range s.ordered(s.listing(v, r)) {
			if sent++; s.cfg.listLimit > 0 && sent > s.cfg.listLimit {
				break
			}
			b = s.appendCheckpoint(b, one)
			if _, err := out.Write(b); err != nil {
				return
			}
			b = append(b[:0], ',')
		}
		_ = out.WriteByte(']')
		_ = out.Flush()
	}}
}

// ordered puts checkpoints in the order that the switches want. Only there
// does a list cost memory.
func (s *Server) ordered(list iter.Seq[checkpoint]) iter.Seq[checkpoint] {
	switch {
	case s.cfg.has(CheckpointsDescending):
		all := slices.Collect(list)
		slices.Reverse(all)
		return slices.Values(all)
	case s.cfg.has(CheckpointsShuffled):
		all := slices.Collect(list)
		rng := rand.New(rand.NewPCG(s.cfg.seed, uint64(len(all))))
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return slices.Values(all)
	}
	return list
}

func handleCheckpointStats(s *Server, c *call) reply {
	vpg := s.findVPG(c.params["id"])
	if vpg == nil {
		return s.unknownID("VPG", c.params["id"])
	}
	v := vpg.journal.at(c.now, span{})
	return ok(struct{ Earliest, Latest json.RawMessage }{
		s.checkpointJSON(v.earliest()),
		s.checkpointJSON(v.latest()),
	})
}

// captureGuests takes live guest content into the guests' versions before an
// insert, without the mutex: that may read a directory of the host.
func captureGuests(s *Server, c *call) {
	s.mu.Lock()
	var vms []*VM
	if vpg := s.findVPG(c.params["id"]); vpg != nil {
		vms = slices.Clone(vpg.vms)
	}
	s.mu.Unlock()
	for _, vm := range vms {
		vm.guest.snapshot()
	}
}

// maxTag is where the switches about long tags cut (zvm-wire 4.4).
const maxTag = 80

func handleInsert(s *Server, c *call) reply {
	vpg := s.findVPG(c.params["id"])
	if vpg == nil {
		return s.unknownID("VPG", c.params["id"])
	}
	var body struct{ CheckpointName string }
	if err := c.decode(&body); err != nil {
		return fail(http.StatusBadRequest, "the body is no insert of a checkpoint")
	}
	if refusal := s.tagRefusal(vpg, body.CheckpointName); refusal != "" {
		return fail(http.StatusInternalServerError, refusal)
	}
	if refusal := s.insertRefusal(vpg); refusal != "" && s.cfg.has(InsertRefusedByHTTP) {
		return fail(http.StatusInternalServerError, refusal)
	}
	return s.answerTask(s.startInsert(vpg, s.storedTag(body.CheckpointName), c.account.name, c.now))
}

// tagRefusal says why a tag is not taken, or "".
func (s *Server) tagRefusal(vpg *VPG, tag string) string {
	switch {
	case tag == "" && !s.cfg.has(EmptyTagAccepted):
		return "a checkpoint needs a name"
	case len(tag) > maxTag && s.cfg.has(LongTagRefused):
		return "the name of the checkpoint is too long"
	case s.cfg.has(OddTagRefused) && plainTag(tag) != tag:
		return "the name of the checkpoint has characters that it may not have"
	case s.cfg.has(DuplicateTagRefused) && vpg.journal.hasTag(tag):
		return "the name of the checkpoint is taken"
	}
	return ""
}

// storedTag is what the journal keeps of a tag.
func (s *Server) storedTag(tag string) string {
	if s.cfg.has(OddTagReplaced) {
		tag = plainTag(tag)
	}
	if s.cfg.has(LongTagTruncated) {
		tag = tag[:min(len(tag), maxTag)]
	}
	return tag
}

// plainTag replaces what is not printable ASCII.
func plainTag(tag string) string {
	plain := []byte(tag)
	for i, b := range plain {
		if b < ' ' || b > '~' {
			plain[i] = '?'
		}
	}
	return string(plain)
}

// insertRefusal says why a VPG cannot take a checkpoint now, or "".
func (s *Server) insertRefusal(vpg *VPG) string {
	switch {
	case !vpg.protects() && !(vpg.paused() && s.cfg.has(PausedInsertTaken)):
		return "VPG " + vpg.name + " cannot take a checkpoint in its state"
	case vpg.test != nil && s.cfg.has(TestRefusesInsert):
		return "VPG " + vpg.name + " is in a failover test"
	case vpg.cloning != nil && s.cfg.has(CloneRefusesInsert):
		return "VPG " + vpg.name + " is being cloned"
	}
	return ""
}

// startInsert begins an insert. One that begins while another runs at the
// same VPG fails, and only its task shows it (zvm-wire 13).
func (s *Server) startInsert(vpg *VPG, tag, user string, now time.Time) *task {
	run := max(0, s.cfg.insertTime(s.inserts))
	t := &task{kind: "InsertTaggedCP", user: user, vpg: vpg}
	vpg.inserts++
	vpg.maxInserts = max(vpg.maxInserts, vpg.inserts)
	if vpg.inserting != nil && !s.cfg.has(SecondInsertQueued) {
		t.finish = func(time.Time) (int, string) {
			return TaskFailed, "another checkpoint is being inserted in VPG " + vpg.name
		}
		t.cleanup = func() { vpg.inserts-- }
		return s.startTask(t, now, run/3)
	}
	s.inserts++
	if vpg.inserting != nil {
		run += max(0, vpg.inserting.due.Sub(now))
	}
	vpg.inserting = t
	t.cleanup = func() {
		vpg.inserts--
		if vpg.inserting == t {
			vpg.inserting = nil
		}
	}
	refusal := s.insertRefusal(vpg)
	t.finish = func(due time.Time) (int, string) {
		if refusal = cmp.Or(refusal, s.insertRefusal(vpg)); refusal != "" {
			return s.missInsert(refusal)
		}
		return s.commitInsert(vpg, tag, now, due)
	}
	return s.startTask(t, now, run)
}

// missInsert ends an insert at a VPG that did not protect all the time.
func (s *Server) missInsert(refusal string) (int, string) {
	if s.cfg.has(InsertSilentlyLost) {
		return TaskCompleted, ""
	}
	return TaskFailed, refusal
}

// commitInsert appends the checkpoint. Its time lies between start and due:
// on a whole second if there is one. The guests are frozen now, since what
// changes later in the same instant does not belong to it any more.
func (s *Server) commitInsert(vpg *VPG, tag string, start, due time.Time) (int, string) {
	at := due.Truncate(time.Second)
	switch {
	case s.cfg.has(TagTimeIsRequest):
		at = start
	case at.Before(start):
		at = due
	}
	point := checkpoint{at: at, tag: &tag, visible: due.Add(s.cfg.listLag), trees: map[*VM]*tree{}}
	for _, vm := range vpg.vms {
		point.trees[vm] = vm.guest.at(at)
	}
	if !vpg.journal.insert(point) {
		return TaskFailed, "the journal of VPG " + vpg.name + " takes no more checkpoints at this time"
	}
	return TaskCompleted, ""
}
