package hookadapter_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pitfalls maps each pitfall of agent hosts (hooks 3) to the tests that keep the hook, its installer and the doctor out
// of it. Names without a package are of this one.
var pitfalls = map[int][]string{
	1:  {"TestQuestionIsPutOnlyWhereSomebodyAnswers"},
	2:  {"TestQuestionIsPutOnlyWhereSomebodyAnswers", "TestQuestionsOnRequest", "cli.TestHookAsksWhereItIsToldTo"},
	3:  {"TestDenialThatNeedsAHumanTellsHowToGetOne", "TestQuestionIsPutOnlyWhereSomebodyAnswers"},
	4:  {"cli.TestHookAsksWhereItIsToldTo"},
	5:  {"TestQuestionIsPutOnlyWhereSomebodyAnswers"},
	6:  {"TestCodexGetsNothingThatVoidsADenial"},
	7:  {"TestEveryDenialHasAReason", "TestEveryHostReadsEveryVerdict"},
	8:  {"cli.TestDoctorFindsAHookThatLetsCallsThrough"},
	9:  {"install.TestSecondInstallationChangesNoByte"},
	10: {"install.TestWhatAHookDoesNotSeeIsToldForEveryHost"},
	11: {"TestEveryHostReadsEveryVerdict", "TestLaw6NoRandomPayloadRunsUnguarded"},
	12: {"TestEveryHostReadsEveryVerdict", "TestCrossReading"},
	13: {"TestEveryHostReadsEveryVerdict", "TestLaw6NoRandomPayloadRunsUnguarded"},
	14: {"install.TestGoldenSettings"},
	15: {"cli.TestCanaryIsRefusedByEveryHost"},
	16: {"TestSubagentGetsTheSameVerdict"},
	17: {"cli.TestStatusTellsAHookThatDoesNotStart"},
	18: {"cli.TestInstalledHookStartsByTheExactString"},
	19: {"TestLaw6BrokenHookDenies"},
	20: {"install.TestGoldenSettings"}, // and BenchmarkColdProcess
	21: {"install.TestGoldenSettings"},
	22: {"install.TestGoldenSettings"},
	23: {"install.TestDamagedSettingsAreRefusedWithTheirPlace"},
	24: {"install.TestNoPluginIsShippedThatNobodyValidates"},
	25: {"install.TestGoldenSettings"},
	26: {"install.TestGoldenSettings"},
	27: {"TestHookThatWasInstalledForAnotherHostAnswersTheOneThatCalls"},
	28: {"TestToolsOfTheHostItselfPass"},
	29: {"TestServerThatCannotBeToldIsUnknown"},
	30: {"TestServerThatCannotBeToldIsUnknown"},
	31: {"TestEveryHostReadsEveryVerdict", "TestEveryDenialHasAReason"},
	32: {"TestQuestionsOnRequest"},
	33: {"install.TestGoldenSettings"},
	34: {"TestQuestionsOnRequest"},
	35: {"TestEveryHostReadsEveryVerdict"},
	36: {"TestCursorAlwaysGetsADecision"},
	37: {"TestArgumentsAsTextAreReadForEveryHost", "TestLaw6InputThatCannotBeReadDenies"},
	38: {"TestNoAnswerChangesTheCall"},
	39: {"TestGoldenAnswers"},
	40: {"cli.TestInstalledHookStartsByTheExactString"},
	41: {"TestGoldenAnswers", "install.TestGoldenSettings"},
	42: {"TestLaw6InputThatCannotBeReadDenies", "TestSpellingsOfOneInput"},
	43: {"TestLargeInputs", "TestInputWithoutEndIsDeniedInTime"},
	44: {"TestHookOutlivesAnInputThatItCouldNotRead", "TestInputIsReadToItsEndWhateverItHolds"},
	45: {"TestProcess"},
	46: {"TestPromptThatIsAboutToShow"},
	47: {"TestGuardedCallRuns"},
	48: {"TestAgentCannotTouchTheHooksSettingsUnasked", "TestGoldenAnswers"},
	49: {"TestGoldenAnswers"},
	50: {"TestCrossReading"},
}

func TestEveryPitfallHasItsTests(t *testing.T) {
	t.Parallel()
	exists := map[string]bool{}
	for prefix, folder := range map[string]string{"": ".", "install.": "install", "cli.": "../cli"} {
		for _, name := range testsIn(t, folder) {
			exists[prefix+name] = true
		}
	}
	const count = 50
	for n := 1; n <= count; n++ {
		if len(pitfalls[n]) == 0 {
			t.Errorf("pitfall %d has no test", n)
		}
		for _, name := range pitfalls[n] {
			if !exists[name] {
				t.Errorf("pitfall %d: there is no %s", n, name)
			}
		}
	}
	if len(pitfalls) != count {
		t.Errorf("%d pitfalls, want %d", len(pitfalls), count)
	}
}

func testsIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := fs.Glob(os.DirFS(folder), "*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}
