package zvmtest

// A Switch turns the server to the other side of a question about the wire
// that public sources leave open, or answer in two ways. With no switch the
// server behaves as the default column says. Marks: [D] documented by the
// vendor, [O] observed by somebody, [I] inferred, [M] measured on a 10.9
// appliance; the numbers are sections of the wire fact sheet, and q1 to q40
// its open questions.
//
//	switch                      default                          source
//	OpenIDScopeOptional         token without openid gets 401    1.3 [D ZIC] / [O VK]
//	MissingScopeAs403           token without openid gets 401    q2 [I]
//	ServiceClientRefreshToken   client_credentials: no refresh   1.4 [I]
//	RefreshTokenSingleUse       refresh token may be used again  1.4 [I]
//	ConcurrentLoginRefused      logins of one user may overlap   1.7 [I] / 13 [M]
//	UnauthorizedMessage, -HTML  401 has an empty body            1.6 [I]
//	UnauthorizedNoChallenge     a 401 has WWW-Authenticate       1.6, q3 [I]
//	ForbiddenEmpty              a 403 has a Message              1.6, q3 [I]
//	FLROperatorAllowed          FLR operator gets 403            1.10 [D] / 13 [M]
//	FLRForbiddenAs401           missing FLR role is a 403        6.7 [O]
//	CamelCaseKeys               PascalCase keys                  2.1 [O] / [D SWG]
//	IDsOnlyInLinks              ids at the top level too         2.1 [O] / [D SWG]
//	BareVMLinks                 a VM's link carries the VPG      2.2 [O], q7
//	NullFields                  optional objects are there       2.6 [O]
//	LegacyDates                 ISO dates                        10.2 [O] / [D]
//	AmbiguousVMBadRequest, -FirstMatch  single VM GET is a 500   2.3 [I]
//	FiltersContain, FiltersIgnored      exact, any case          2.4 [I]
//	FiltersWildcard             * is a character                 q6
//	UnknownIDAs500              unknown id is a 404              2.6 [I]
//	SwappedStatusNames          3 Rpo, 4 History                 3.1 [D] / [O]
//	FewerSubStatusNames         0 to 40 have names               3.2 [O], q10
//	CheckpointsDescending, -Shuffled    oldest first             4.1 [O] / [I]
//	TimestampsWithoutFraction, -InMilliseconds  whole seconds, .000Z  4.1 [O]
//	DateBoundsExclusive         bounds belong to the range       4.2 [I]
//	InsertRefusedByHTTP, InsertSilentlyLost  the task fails      4.5 [I]
//	PausedInsertTaken           as during a sync                 4.5 [I], q14
//	TestRefusesInsert           inserts go on during a test      4.5 [D], q14
//	CloneRefusesInsert          inserts go on during a clone     q14
//	SecondInsertQueued          the second of two inserts fails  13 [M], q18
//	LongTagRefused, LongTagTruncated    any tag is taken         4.4 [I]
//	OddTagRefused, -Replaced    any character is taken           12 [I], q12
//	EmptyTagAccepted            an empty tag is a 500            4.4 [I], q12
//	DuplicateTagRefused         two tags may be the same         4.4 [I], q12
//	TagTypeZero, -Two           Type 1                           4.1 [I], q11
//	TagTimeIsRequest            near the task's end              q15
//	CheckpointIDsRestart        ids go on after a resync         4.1 [I]
//	TestTagReplaces, TestTagNone        "Tested at" appended     4.5 [D]
//	TaskIDColon                 guid.guid                        5.3 [O]
//	TasksBeginUnstarted         tasks begin in state 1           5.2 [O], q21
//	SessionAsArray              one FLR session is an object     6.1 [D]
//	MountFails                  mounts succeed                   6.3 [D]
//	FailedMountVanishes         the session stays, MountFailed   q22
//	LegacyMountNames            Mount…, as documented            6.3 [D] / [O UI]
//	RemoteFLRServed             local VPGs alone are mounted     13 [M], q24
//	FLREnabledIgnored           not without IsFlrEnabled         6.7 [I], q32
//	MountEndsWithCheckpoint     a session outlives it            q33
//	UnmountFails                unmounts succeed                 6.6 [I]
//	UnmountAnswersNothing, UnmountAnswersSession  task id        6.6 [I]
//	DownloadBlocksUnmount       an unmount cuts no download      6.6 [I], q30
//	SecondUnmountRefused        it joins the first               q30
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
//	DownloadChunked             a raw file has Content-Length    6.5, q29
//	SecondTestFailsAsTask       second test is a 500             7.2 [I]
//	TestRefusedWhileMounted     a mount does not matter          q31, q34
//	TestAndCloneExclude         both go on at once               q34
//	CloneUnknownKeyRefused      unknown key is ignored           7.1 [I]
//	CloneTakesCheckpointIdentifier  an unknown key               7.1 [D] / [O], q35
//	CloneAbortAnswersTask       200 without content              7.1 [D] / [I]
//	CloneAbortFails             the clone's task is Stopped      q36
//	ProblemDetails              a 400 has a Message              9 [I], q38
//	BusinessErrorsAs400         business errors are a 500        9 [O], q39
//	PeerIDsDiffer               a pair of ZVMs shares ids        8 [I], q24
//
// Questions whose answer is a time or a number are options: WithTokenTTL (q1),
// WithSessionLimit and WithLockout (q4), WithListLimit (q13), WithListLag
// (q15), WithTaskRetention (q19), WithTaskVisibleAfter (q20), WithMountTime,
// WithMountLimit and WithMountTTL (q31), WithLinkTTL (q29).
//
// These have no switch, for the reason given:
//
//	q4   rate limits         a fault: On("", "/v1/**").Status(429, "")
//	q5   roles of clients    WithServiceClient takes a role; that a viewer
//	                         writes would hide the errors of an agent
//	q9   addresses of VMs    VM.SetIPs, or NullFields for none
//	q13  slow lists          a fault: Delay or Drip
//	q15  a tag at the next automatic point: it would hold changes made after
//	                         its task was done, and no agent could be right
//	q16  tags of the system  VPG.RunForeignInsert
//	q17  holding a tag       no operation; VPG.LoseCheckpoint loses one
//	q19  401 for a task      an expired token: WithTokenTTL, RevokeTokens
//	q21  reasons of tasks    ScriptTask, any other state too
//	q25  names of roots      Guest.SetLayout; Guest.Deny for what is unreadable
//	q27  a slash at the end  no sample of a path has one
//	q28  initialDownloadPath ignored; nothing says what it would do
//	q37  stages of a test    Starting, InTest, Stopping: no source has others
//	q38  HTML, 503 at start  faults: Answer, ContentType
//	q40  10.9                what was measured there is the default
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
	// MissingScopeAs403 answers 403, not 401, to a token without openid.
	MissingScopeAs403
	// ForbiddenEmpty gives a 403 of /v1 no body.
	ForbiddenEmpty
	// UnauthorizedNoChallenge leaves WWW-Authenticate out of a 401 of /v1.
	UnauthorizedNoChallenge
	// FiltersWildcard reads * in a name filter as any characters.
	FiltersWildcard
	// BareVMLinks leaves ?VpgIdentifier out of the link of a VM.
	BareVMLinks
	// FewerSubStatusNames ends /v1/vpgs/substatuses at the last name that all
	// sources agree on, 32.
	FewerSubStatusNames
	// TagTypeZero gives tagged checkpoints the Type of automatic ones.
	TagTypeZero
	// TagTypeTwo gives tagged checkpoints the Type 2.
	TagTypeTwo
	// OddTagRefused answers 500 to a tag with anything but printable ASCII.
	OddTagRefused
	// OddTagReplaced puts a question mark for each such byte.
	OddTagReplaced
	// EmptyTagAccepted takes an insert without a name.
	EmptyTagAccepted
	// DuplicateTagRefused answers 500 to a tag that the journal has.
	DuplicateTagRefused
	// PausedInsertTaken lets an insert succeed while replication is paused.
	PausedInsertTaken
	// TestRefusesInsert lets no insert succeed while a failover test lives.
	TestRefusesInsert
	// CloneRefusesInsert lets no insert succeed while the VPG is cloned.
	CloneRefusesInsert
	// TagTimeIsRequest dates a tagged checkpoint, and what it holds, to the
	// insert's request.
	TagTimeIsRequest
	// SecondInsertQueued has the second of two inserts at a VPG wait for the
	// first.
	SecondInsertQueued
	// TasksBeginUnstarted shows state 0 for the first third of a task.
	TasksBeginUnstarted
	// LegacyMountNames names the states of a session NotMounted and MountReady.
	LegacyMountNames
	// FailedMountVanishes removes the session of a failed mount.
	FailedMountVanishes
	// RemoteFLRServed mounts VMs of VPGs that recover elsewhere, too.
	RemoteFLRServed
	// FLREnabledIgnored mounts VMs whose IsFlrEnabled is false.
	FLREnabledIgnored
	// MountEndsWithCheckpoint ends a session whose checkpoint left the journal.
	MountEndsWithCheckpoint
	// DownloadChunked sends a raw file without Content-Length and ranges.
	DownloadChunked
	// DownloadBlocksUnmount answers 500 to an unmount during a download.
	DownloadBlocksUnmount
	// SecondUnmountRefused answers 500 to an unmount of a session that is being
	// unmounted.
	SecondUnmountRefused
	// TestRefusedWhileMounted answers 500 to a test of a VPG with an FLR session.
	TestRefusedWhileMounted
	// TestAndCloneExclude answers 500 to a clone during a test and to a test during
	// a clone.
	TestAndCloneExclude
	// CloneTakesCheckpointIdentifier reads checkpointIdentifier as checkpointId.
	CloneTakesCheckpointIdentifier
	// CloneAbortFails ends an aborted clone as Failed, not Stopped.
	CloneAbortFails
	// ProblemDetails writes a 400 as ASP.NET does.
	ProblemDetails
	// BusinessErrorsAs400 answers 400 to what is otherwise a business error of 500.
	BusinessErrorsAs400
	// PeerIDsDiffer has a peer show VPGs, VMs and checkpoints under ids of its own. See [Server.NewPeer].
	PeerIDsDiffer
)
