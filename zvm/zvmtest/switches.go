package zvmtest

import (
	"fmt"
	"math/rand/v2"
)

// A Switch turns the server to the other side of a question about the wire
// that public sources leave open, or answer in two ways. With no switch the
// server behaves as the default column says. Marks: [D] documented by the
// vendor, [O] observed by somebody, [I] inferred, [M] measured on a 10.9
// appliance; the numbers are sections of the wire fact sheet.
//
//	switch                      default                          source
//	OpenIDScopeOptional         token without openid gets 401    1.3 [D ZIC] / [O VK]
//	ServiceClientRefreshToken   client_credentials: no refresh   1.4 [I]
//	RefreshTokenSingleUse       refresh token may be used again  1.4 [I]
//	ConcurrentLoginRefused      logins of one user may overlap   1.7 [I] / 13 [M]
//	UnauthorizedMessage, -HTML  401 has an empty body            1.6 [I]
//	FLROperatorAllowed          FLR operator gets 403            1.10 [D] / 13 [M]
//	FLRForbiddenAs401           missing FLR role is a 403        6.7 [O]
//	CamelCaseKeys               PascalCase keys                  2.1 [O] / [D SWG]
//	IDsOnlyInLinks              ids at the top level too         2.1 [O] / [D SWG]
//	NullFields                  optional objects are there       2.6 [O]
//	LegacyDates                 ISO dates                        10.2 [O] / [D]
//	AmbiguousVMBadRequest, -FirstMatch  single VM GET is a 500   2.3 [I]
//	FiltersContain, FiltersIgnored      exact, any case          2.4 [I]
//	UnknownIDAs500              unknown id is a 404              2.6 [I]
//	SwappedStatusNames          3 Rpo, 4 History                 3.1 [D] / [O]
//	CheckpointsDescending, -Shuffled    oldest first             4.1 [O] / [I]
//	TimestampsWithoutFraction, -InMilliseconds  whole seconds, .000Z  4.1 [O]
//	DateBoundsExclusive         bounds belong to the range       4.2 [I]
//	InsertRefusedByHTTP, InsertSilentlyLost  the task fails      4.5 [I]
//	LongTagRefused, LongTagTruncated    any tag is taken         4.4 [I]
//	CheckpointIDsRestart        ids go on after a resync         4.1 [I]
//	TestTagReplaces, TestTagNone        "Tested at" appended     4.5 [D]
//	TaskIDColon                 guid.guid                        5.3 [O]
//	SessionAsArray              one FLR session is an object     6.1 [D]
//	MountFails                  mounts succeed                   6.3 [D]
//	UnmountFails                unmounts succeed                 6.6 [I]
//	UnmountAnswersNothing, UnmountAnswersSession  task id        6.6 [I]
//	BrowsePageSize100           all children without a pageSize  6.4 [I]
//	BrowsePageBaseZero          the first page is 1              6.4 [I]
//	BrowseIgnoresPaging, BrowseAlwaysFirstPage  pages work       6.4 [I]
//	BrowseBaseNames             items carry full paths           6.4 [D] / [I]
//	DownloadLinkAbsolute, -Foreign, -NotALink, -Unquoted, DownloadBytes
//	                            relative link                    6.5 [O] / [I]
//	DownloadWithoutBearer       the link needs the bearer        6.5 [I]
//	DownloadLinkSingleUse       a link may be used again         6.5 [I]
//	DownloadLoginPage           the link yields the data         6.5 [I]
//	DownloadZipped              one file comes raw               6.5 [I]
//	DownloadSeveralRefused      several files come as a zip      6.5 [I]
//	SecondTestFailsAsTask       second test is a 500             7.2 [I]
//	CloneUnknownKeyRefused      unknown key is ignored           7.1 [I]
//	CloneAbortAnswersTask       200 without content              7.1 [D] / [I]
//
// Questions whose answer is a time are options: WithTokenTTL, WithListLag,
// WithTaskVisibleAfter, WithTaskRetention, WithMountTime, WithLinkTTL. The
// names of a guest's roots are its layout: Guest.SetLayout.
type Switch int

// The switches; the table at Switch has their defaults and sources.
const (
	// OpenIDScopeOptional accepts tokens issued without scope=openid.
	OpenIDScopeOptional Switch = iota + 1
	// ServiceClientRefreshToken adds a refresh token to the answer of the
	// client-credentials grant.
	ServiceClientRefreshToken
	// RefreshTokenSingleUse ends the Keycloak session when a refresh token
	// comes a second time.
	RefreshTokenSingleUse
	// ConcurrentLoginRefused answers 401 to a password login that begins
	// while another one of the same user runs.
	ConcurrentLoginRefused
	// UnauthorizedMessage gives a 401 of /v1 a JSON body.
	UnauthorizedMessage
	// UnauthorizedHTML gives a 401 of /v1 an HTML body.
	UnauthorizedHTML
	// FLROperatorAllowed lets the FLR operator use /v1/flrs.
	FLROperatorAllowed
	// FLRForbiddenAs401 reports a missing FLR role as 401.
	FLRForbiddenAs401
	// CamelCaseKeys writes JSON keys as the OpenAPI document prints them.
	CamelCaseKeys
	// IDsOnlyInLinks leaves VmIdentifier, VpgIdentifier, SiteIdentifier and
	// TaskIdentifier out of the top level of objects.
	IDsOnlyInLinks
	// NullFields sends null for every optional object and list.
	NullFields
	// LegacyDates writes /Date(ms)/ in tasks and checkpoints.
	LegacyDates
	// AmbiguousVMBadRequest answers 400 to the single GET of a VM in several
	// VPGs.
	AmbiguousVMBadRequest
	// AmbiguousVMFirstMatch answers that GET with the first VPG's element.
	AmbiguousVMFirstMatch
	// FiltersContain matches name filters anywhere in the name.
	FiltersContain
	// FiltersIgnored answers lists in full, whatever the filters.
	FiltersIgnored
	// UnknownIDAs500 answers 500 instead of 404.
	UnknownIDAs500
	// SwappedStatusNames lists HistoryNotMeetingSLA as 3 and
	// RpoNotMeetingSLA as 4.
	SwappedStatusNames
	// CheckpointsDescending lists the newest checkpoint first.
	CheckpointsDescending
	// CheckpointsShuffled lists checkpoints in no order.
	CheckpointsShuffled
	// TimestampsWithoutFraction ends time stamps of checkpoints in ":ssZ".
	TimestampsWithoutFraction
	// TimestampsInMilliseconds gives them their true milliseconds.
	TimestampsInMilliseconds
	// DateBoundsExclusive leaves startDate and endDate out of the range.
	DateBoundsExclusive
	// InsertRefusedByHTTP answers 500 to an insert at a VPG that does not
	// protect.
	InsertRefusedByHTTP
	// InsertSilentlyLost completes such an insert without a checkpoint.
	InsertSilentlyLost
	// LongTagRefused answers 500 to a tag of more than 80 bytes.
	LongTagRefused
	// LongTagTruncated cuts it there.
	LongTagTruncated
	// CheckpointIDsRestart begins a journal again at its first id when it is
	// rebuilt, so that an old id names another checkpoint.
	CheckpointIDsRestart
	// TestTagReplaces puts "Tested at" in the place of the tested
	// checkpoint's tag.
	TestTagReplaces
	// TestTagNone leaves tags alone after a test.
	TestTagNone
	// TaskIDColon answers "guid:guid" to a write; the task's GET still wants
	// the dot.
	TaskIDColon
	// SessionAsArray wraps the single FLR session in an array.
	SessionAsArray
	// MountFails ends every mount as MountFailed.
	MountFails
	// UnmountFails ends every unmount task as Failed; the session stays.
	UnmountFails
	// UnmountAnswersNothing answers an unmount with an empty string.
	UnmountAnswersNothing
	// UnmountAnswersSession answers it with the session's id.
	UnmountAnswersSession
	// BrowsePageSize100 answers 100 children where no pageSize was asked.
	BrowsePageSize100
	// BrowsePageBaseZero counts pages from 0.
	BrowsePageBaseZero
	// BrowseIgnoresPaging answers all children, whatever the page.
	BrowseIgnoresPaging
	// BrowseAlwaysFirstPage answers the first page, whatever the number.
	BrowseAlwaysFirstPage
	// BrowseBaseNames gives items their names instead of their paths.
	BrowseBaseNames
	// DownloadLinkAbsolute answers an absolute link of the same origin.
	DownloadLinkAbsolute
	// DownloadLinkForeign answers a link of another origin, which needs no
	// bearer and records what it is sent; see ForeignRequests.
	DownloadLinkForeign
	// DownloadNotALink answers a string that is no link.
	DownloadNotALink
	// DownloadLinkUnquoted answers the link as plain text.
	DownloadLinkUnquoted
	// DownloadBytes answers the data itself.
	DownloadBytes
	// DownloadWithoutBearer serves links without Authorization.
	DownloadWithoutBearer
	// DownloadLinkSingleUse serves a link once.
	DownloadLinkSingleUse
	// DownloadLoginPage serves an HTML page in place of the data.
	DownloadLoginPage
	// DownloadZipped sends a single file in a zip.
	DownloadZipped
	// DownloadSeveralRefused answers 500 where the download would be a zip.
	DownloadSeveralRefused
	// SecondTestFailsAsTask accepts a second test and fails its task.
	SecondTestFailsAsTask
	// CloneUnknownKeyRefused answers 400 to a clone body with a key it does
	// not know.
	CloneUnknownKeyRefused
	// CloneAbortAnswersTask answers CloneAbort with a task id.
	CloneAbortAnswersTask
)

type switchInfo struct {
	name  string
	group string // switches of one group exclude each other
	fatal bool   // no recovery can succeed with it, so Hostile leaves it out
}

// switchTable is indexed by Switch and never written to.
var switchTable = [...]switchInfo{
	OpenIDScopeOptional:       {name: "OpenIDScopeOptional"},
	ServiceClientRefreshToken: {name: "ServiceClientRefreshToken"},
	RefreshTokenSingleUse:     {name: "RefreshTokenSingleUse"},
	ConcurrentLoginRefused:    {name: "ConcurrentLoginRefused"},
	UnauthorizedMessage:       {name: "UnauthorizedMessage", group: "401 body"},
	UnauthorizedHTML:          {name: "UnauthorizedHTML", group: "401 body"},
	FLROperatorAllowed:        {name: "FLROperatorAllowed"},
	FLRForbiddenAs401:         {name: "FLRForbiddenAs401"},
	CamelCaseKeys:             {name: "CamelCaseKeys"},
	IDsOnlyInLinks:            {name: "IDsOnlyInLinks"},
	NullFields:                {name: "NullFields"},
	LegacyDates:               {name: "LegacyDates"},
	AmbiguousVMBadRequest:     {name: "AmbiguousVMBadRequest", group: "single VM"},
	AmbiguousVMFirstMatch:     {name: "AmbiguousVMFirstMatch", group: "single VM"},
	FiltersContain:            {name: "FiltersContain", group: "filters"},
	FiltersIgnored:            {name: "FiltersIgnored", group: "filters"},
	UnknownIDAs500:            {name: "UnknownIDAs500"},
	SwappedStatusNames:        {name: "SwappedStatusNames"},
	CheckpointsDescending:     {name: "CheckpointsDescending", group: "order"},
	CheckpointsShuffled:       {name: "CheckpointsShuffled", group: "order"},
	TimestampsWithoutFraction: {name: "TimestampsWithoutFraction", group: "stamps"},
	TimestampsInMilliseconds:  {name: "TimestampsInMilliseconds", group: "stamps"},
	DateBoundsExclusive:       {name: "DateBoundsExclusive"},
	InsertRefusedByHTTP:       {name: "InsertRefusedByHTTP", group: "insert"},
	InsertSilentlyLost:        {name: "InsertSilentlyLost", group: "insert"},
	LongTagRefused:            {name: "LongTagRefused", group: "long tag", fatal: true},
	LongTagTruncated:          {name: "LongTagTruncated", group: "long tag", fatal: true},
	CheckpointIDsRestart:      {name: "CheckpointIDsRestart"},
	TestTagReplaces:           {name: "TestTagReplaces", group: "test tag"},
	TestTagNone:               {name: "TestTagNone", group: "test tag"},
	TaskIDColon:               {name: "TaskIDColon"},
	SessionAsArray:            {name: "SessionAsArray"},
	MountFails:                {name: "MountFails", fatal: true},
	UnmountFails:              {name: "UnmountFails", fatal: true},
	UnmountAnswersNothing:     {name: "UnmountAnswersNothing", group: "unmount"},
	UnmountAnswersSession:     {name: "UnmountAnswersSession", group: "unmount"},
	BrowsePageSize100:         {name: "BrowsePageSize100"},
	BrowsePageBaseZero:        {name: "BrowsePageBaseZero"},
	BrowseIgnoresPaging:       {name: "BrowseIgnoresPaging", group: "paging"},
	BrowseAlwaysFirstPage:     {name: "BrowseAlwaysFirstPage", group: "paging", fatal: true},
	BrowseBaseNames:           {name: "BrowseBaseNames"},
	DownloadLinkAbsolute:      {name: "DownloadLinkAbsolute", group: "link"},
	DownloadLinkForeign:       {name: "DownloadLinkForeign", group: "link", fatal: true},
	DownloadNotALink:          {name: "DownloadNotALink", group: "link", fatal: true},
	DownloadLinkUnquoted:      {name: "DownloadLinkUnquoted", group: "link"},
	DownloadBytes:             {name: "DownloadBytes", group: "link"},
	DownloadWithoutBearer:     {name: "DownloadWithoutBearer"},
	DownloadLinkSingleUse:     {name: "DownloadLinkSingleUse"},
	DownloadLoginPage:         {name: "DownloadLoginPage", fatal: true},
	DownloadZipped:            {name: "DownloadZipped"},
	DownloadSeveralRefused:    {name: "DownloadSeveralRefused", fatal: true},
	SecondTestFailsAsTask:     {name: "SecondTestFailsAsTask"},
	CloneUnknownKeyRefused:    {name: "CloneUnknownKeyRefused"},
	CloneAbortAnswersTask:     {name: "CloneAbortAnswersTask"},
}

func (sw Switch) info() (switchInfo, bool) {
	if sw <= 0 || int(sw) >= len(switchTable) {
		return switchInfo{}, false
	}
	return switchTable[sw], true
}

// String is the switch's name.
func (sw Switch) String() string {
	if info, ok := sw.info(); ok {
		return info.name
	}
	return fmt.Sprintf("Switch(%d)", int(sw))
}

// Switches lists every switch there is, in the order of the table.
func Switches() []Switch {
	var all []Switch
	for sw := OpenIDScopeOptional; ; sw++ {
		if _, ok := sw.info(); !ok {
			return all
		}
		all = append(all, sw)
	}
}

func (c *config) has(sw Switch) bool { return c.switches[sw] }

func (c *config) checkSwitches() error {
	chosen := map[string]Switch{}
	for _, sw := range Switches() {
		info, _ := sw.info()
		if !c.has(sw) || info.group == "" {
			continue
		}
		if other, taken := chosen[info.group]; taken {
			return fmt.Errorf("%v and %v exclude each other", other, sw)
		}
		chosen[info.group] = sw
	}
	return nil
}

// addHostileSwitches turns every survivable question by the seed: on or off,
// or one member of a group. What the caller chose stays chosen.
func (c *config) addHostileSwitches() {
	rng := rand.New(rand.NewPCG(c.seed, 0x7a766d))
	settled := map[string]bool{}
	for sw := range c.switches {
		info, _ := sw.info()
		settled[info.group] = info.group != ""
	}
	for _, sw := range Switches() {
		info, _ := sw.info()
		turn := rng.IntN(2) == 0
		if info.fatal || !turn || info.group != "" && settled[info.group] {
			continue
		}
		c.switches[sw] = true
		settled[info.group] = info.group != ""
	}
}
