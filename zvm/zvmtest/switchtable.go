package zvmtest

import (
	"fmt"
	"math/rand/v2"
)

type switchInfo struct {
	name  string
	group string // switches of one group exclude each other
	apart bool   // Hostile leaves it out: it forbids a recovery, or is kinder than what was measured
}

// switchTable is indexed by Switch and never written to.
var switchTable = [...]switchInfo{
	OpenIDScopeOptional:            {name: "OpenIDScopeOptional", group: "scope"},
	ServiceClientRefreshToken:      {name: "ServiceClientRefreshToken"},
	RefreshTokenSingleUse:          {name: "RefreshTokenSingleUse"},
	ConcurrentLoginRefused:         {name: "ConcurrentLoginRefused"},
	UnauthorizedMessage:            {name: "UnauthorizedMessage", group: "401 body"},
	UnauthorizedHTML:               {name: "UnauthorizedHTML", group: "401 body"},
	FLROperatorAllowed:             {name: "FLROperatorAllowed"},
	FLRForbiddenAs401:              {name: "FLRForbiddenAs401"},
	CamelCaseKeys:                  {name: "CamelCaseKeys"},
	IDsOnlyInLinks:                 {name: "IDsOnlyInLinks", group: "vm ids"},
	NullFields:                     {name: "NullFields"},
	LegacyDates:                    {name: "LegacyDates"},
	AmbiguousVMBadRequest:          {name: "AmbiguousVMBadRequest", group: "single VM"},
	AmbiguousVMFirstMatch:          {name: "AmbiguousVMFirstMatch", group: "single VM"},
	FiltersContain:                 {name: "FiltersContain", group: "filters"},
	FiltersIgnored:                 {name: "FiltersIgnored", group: "filters"},
	UnknownIDAs500:                 {name: "UnknownIDAs500"},
	SwappedStatusNames:             {name: "SwappedStatusNames"},
	CheckpointsDescending:          {name: "CheckpointsDescending", group: "order"},
	CheckpointsShuffled:            {name: "CheckpointsShuffled", group: "order"},
	TimestampsWithoutFraction:      {name: "TimestampsWithoutFraction", group: "stamps"},
	TimestampsInMilliseconds:       {name: "TimestampsInMilliseconds", group: "stamps"},
	DateBoundsExclusive:            {name: "DateBoundsExclusive"},
	InsertRefusedByHTTP:            {name: "InsertRefusedByHTTP", group: "insert"},
	InsertSilentlyLost:             {name: "InsertSilentlyLost", group: "insert"},
	LongTagRefused:                 {name: "LongTagRefused", group: "long tag", apart: true},
	LongTagTruncated:               {name: "LongTagTruncated", group: "long tag", apart: true},
	CheckpointIDsRestart:           {name: "CheckpointIDsRestart"},
	TestTagReplaces:                {name: "TestTagReplaces", group: "test tag"},
	TestTagNone:                    {name: "TestTagNone", group: "test tag"},
	TaskIDColon:                    {name: "TaskIDColon"},
	SessionAsArray:                 {name: "SessionAsArray"},
	MountFails:                     {name: "MountFails", apart: true},
	UnmountFails:                   {name: "UnmountFails", apart: true},
	UnmountAnswersNothing:          {name: "UnmountAnswersNothing", group: "unmount"},
	UnmountAnswersSession:          {name: "UnmountAnswersSession", group: "unmount"},
	BrowsePageSize100:              {name: "BrowsePageSize100"},
	BrowsePageBaseZero:             {name: "BrowsePageBaseZero"},
	BrowseIgnoresPaging:            {name: "BrowseIgnoresPaging", group: "paging"},
	BrowseAlwaysFirstPage:          {name: "BrowseAlwaysFirstPage", group: "paging", apart: true},
	BrowseBaseNames:                {name: "BrowseBaseNames"},
	DownloadLinkAbsolute:           {name: "DownloadLinkAbsolute", group: "link"},
	DownloadLinkForeign:            {name: "DownloadLinkForeign", group: "link", apart: true},
	DownloadNotALink:               {name: "DownloadNotALink", group: "link", apart: true},
	DownloadLinkUnquoted:           {name: "DownloadLinkUnquoted", group: "link"},
	DownloadBytes:                  {name: "DownloadBytes", group: "link"},
	DownloadWithoutBearer:          {name: "DownloadWithoutBearer"},
	DownloadLinkSingleUse:          {name: "DownloadLinkSingleUse"},
	DownloadLoginPage:              {name: "DownloadLoginPage", apart: true},
	DownloadZipped:                 {name: "DownloadZipped"},
	DownloadSeveralRefused:         {name: "DownloadSeveralRefused", apart: true},
	SecondTestFailsAsTask:          {name: "SecondTestFailsAsTask"},
	CloneUnknownKeyRefused:         {name: "CloneUnknownKeyRefused", group: "clone key"},
	CloneAbortAnswersTask:          {name: "CloneAbortAnswersTask"},
	MissingScopeAs403:              {name: "MissingScopeAs403", group: "scope"},
	ForbiddenEmpty:                 {name: "ForbiddenEmpty"},
	UnauthorizedNoChallenge:        {name: "UnauthorizedNoChallenge"},
	FiltersWildcard:                {name: "FiltersWildcard", group: "filters"},
	BareVMLinks:                    {name: "BareVMLinks", group: "vm ids"},
	FewerSubStatusNames:            {name: "FewerSubStatusNames"},
	TagTypeZero:                    {name: "TagTypeZero", group: "tag type"},
	TagTypeTwo:                     {name: "TagTypeTwo", group: "tag type"},
	OddTagRefused:                  {name: "OddTagRefused", group: "odd tag", apart: true},
	OddTagReplaced:                 {name: "OddTagReplaced", group: "odd tag", apart: true},
	EmptyTagAccepted:               {name: "EmptyTagAccepted"},
	DuplicateTagRefused:            {name: "DuplicateTagRefused"},
	PausedInsertTaken:              {name: "PausedInsertTaken"},
	TestRefusesInsert:              {name: "TestRefusesInsert"},
	CloneRefusesInsert:             {name: "CloneRefusesInsert"},
	TagTimeIsRequest:               {name: "TagTimeIsRequest"},
	SecondInsertQueued:             {name: "SecondInsertQueued", apart: true},
	TasksBeginUnstarted:            {name: "TasksBeginUnstarted"},
	LegacyMountNames:               {name: "LegacyMountNames"},
	FailedMountVanishes:            {name: "FailedMountVanishes"},
	RemoteFLRServed:                {name: "RemoteFLRServed"},
	FLREnabledIgnored:              {name: "FLREnabledIgnored"},
	MountEndsWithCheckpoint:        {name: "MountEndsWithCheckpoint"},
	DownloadChunked:                {name: "DownloadChunked"},
	DownloadBlocksUnmount:          {name: "DownloadBlocksUnmount"},
	SecondUnmountRefused:           {name: "SecondUnmountRefused"},
	TestRefusedWhileMounted:        {name: "TestRefusedWhileMounted"},
	TestAndCloneExclude:            {name: "TestAndCloneExclude", apart: true},
	CloneTakesCheckpointIdentifier: {name: "CloneTakesCheckpointIdentifier", group: "clone key"},
	CloneAbortFails:                {name: "CloneAbortFails"},
	ProblemDetails:                 {name: "ProblemDetails"},
	BusinessErrorsAs400:            {name: "BusinessErrorsAs400"},
	PeerIDsDiffer:                  {name: "PeerIDsDiffer"},
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
		if info.apart || !turn || info.group != "" && settled[info.group] {
			continue
		}
		c.switches[sw] = true
		settled[info.group] = info.group != ""
	}
}
