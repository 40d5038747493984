package zertorewind_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/zerto-rewind/zerto-rewind"

// A room is a package, or a tree of packages, of the house. Paths are relative
// to the module.
type room struct {
	floor int
	// uses lists the other rooms its code may import.
	uses []string
	// modules lists the third-party modules its code may import; nil means any.
	modules []string
	// never lists standard packages that its code may not import, with what is
	// below them.
	never []string
	// testModules lists third-party modules that its tests may import besides
	// those that all tests may.
	testModules []string
}

var (
	nothing = []string{}
	core    = []string{"golang.org/x/sync", "github.com/hashicorp/go-retryablehttp"}

	// inTests lists what the tests of every room may import besides.
	inTests = []string{"github.com/google/go-cmp", "github.com/jarcoal/httpmock"}
)

// house says where each package lives. A new package needs a line here, and
// its reason to be a room of its own.
var house = map[string]room{
	"task": {floor: 1, modules: []string{"golang.org/x/sync"}, never: []string{"net", "os"}},

	"zvm": {floor: 2, uses: []string{"task"}, modules: core},
	// A simulator that shared the client's decoders would share its mistakes.
	"zvm/zvmtest": {floor: 2, modules: nothing, testModules: []string{"github.com/getkin/kin-openapi"}},
	// It asks a ZVM, simulated or real, what the client relies on.
	"zvm/zvmtest/conformance": {floor: 2, uses: []string{"zvm", "task"}, modules: nothing},

	"catalog":       {floor: 3, modules: nothing, never: []string{"net", "os", "time"}},
	"catalog/file":  {floor: 3, uses: []string{"catalog"}, modules: []string{"github.com/tailscale/hujson", "github.com/gofrs/flock", "github.com/google/renameio"}},
	"catalog/shell": {floor: 3, uses: []string{"catalog"}, modules: []string{"mvdan.cc/sh"}},

	"rewind":      {floor: 4, uses: []string{"task", "zvm", "catalog"}, modules: core},
	"rewind/gate": {floor: 4, uses: []string{"task", "zvm", "catalog", "rewind"}, modules: core},

	"adapters/ledger": {floor: 5, uses: []string{"task", "zvm", "catalog", "rewind", "rewind/gate"}},
	"adapters/hook":   {floor: 5, uses: adapterUses},
	// What a host's settings hold is no business of the verdict.
	"adapters/hook/install":     {floor: 5, modules: []string{"github.com/tailscale/hujson", "github.com/pelletier/go-toml"}, never: []string{"net"}},
	"adapters/mcp":              {floor: 5, uses: adapterUses},
	"adapters/proxy":            {floor: 5, uses: adapterUses},
	"adapters/cli":              {floor: 5, uses: append([]string{"zvm/zvmtest", "adapters/hook", "adapters/hook/install", "adapters/mcp", "adapters/proxy"}, adapterUses...)},
	"adapters/cmd/zerto-rewind": {floor: 5, uses: []string{"adapters/cli"}},

	// Outside the house: whoever reads an example imports what it shows.
	"examples": {floor: 6, uses: append([]string{"zvm/zvmtest", "adapters/hook", "adapters/mcp", "adapters/proxy", "adapters/cli"}, adapterUses...)},
	"":         {floor: 6},
}

var adapterUses = []string{
	"task", "zvm", "catalog", "catalog/file", "catalog/shell", "rewind", "rewind/gate", "adapters/ledger",
}

// roomOf returns the innermost room that holds the package at the path, and
// false when there is none.
func roomOf(pkg string) (string, bool) {
	for dir := pkg; dir != "."; dir = path.Dir(dir) {
		if _, ok := house[dir]; ok {
			return dir, true
		}
	}
	return "", pkg == "."
}

// An importing is one import line of the module.
type importing struct {
	pkg    string // directory, relative to the module, "." for its root
	inTest bool
	target string
}

// objection returns what is wrong with the import, or "" when nothing is.
func (i importing) objection() string {
	name, ok := roomOf(i.pkg)
	if !ok {
		return i.pkg + " has no room in the house"
	}
	here := house[name]
	inner, isInner := inModule(i.target)
	switch {
	case isInner:
		there, ok := roomOf(inner)
		switch {
		case !ok:
			return fmt.Sprintf("%s imports %s, which has no room in the house", i.pkg, inner)
		case there == name, slices.Contains(here.uses, there):
		case i.inTest && (there == "zvm/zvmtest" || house[there].floor <= here.floor):
		default:
			return fmt.Sprintf("%s may not import %s", i.pkg, inner)
		}
	case isStandard(i.target):
		if !i.inTest && i.target != addresses && within(i.target, here.never) {
			return fmt.Sprintf("%s may not import %s", i.pkg, i.target)
		}
	case here.modules == nil, within(i.target, here.modules), i.inTest && within(i.target, inTests), i.inTest && within(i.target, here.testModules):
	default:
		return fmt.Sprintf("%s may not import the module of %s", i.pkg, i.target)
	}
	return ""
}

// TestTheModuleBuildsWithGo125 keeps a dependency from raising what users need.
func TestTheModuleBuildsWithGo125(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "\ngo 1.25.0\n") {
		t.Error("go.mod asks for another Go than 1.25.0")
	}
}

// addresses is the one package below net that reaches no network.
const addresses = "net/netip"

func inModule(target string) (string, bool) {
	if target == module {
		return ".", true
	}
	return strings.CutPrefix(target, module+"/")
}

func isStandard(target string) bool {
	first, _, _ := strings.Cut(target, "/")
	return !strings.Contains(first, ".")
}

func within(target string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return target == root || strings.HasPrefix(target, root+"/")
	})
}

// eachFile calls visit with every Go file of the module, parsed in the mode,
// whatever its build constraints.
func eachFile(t *testing.T, mode parser.Mode, visit func(name string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, mode|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(name), file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func importsOfModule(t *testing.T) []importing {
	t.Helper()
	var all []importing
	eachFile(t, parser.ImportsOnly, func(name string, file *ast.File) {
		for _, spec := range file.Imports {
			target, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, importing{path.Dir(name), strings.HasSuffix(name, "_test.go"), target})
		}
	})
	return all
}

func TestImportsGoDownOnly(t *testing.T) {
	t.Parallel()
	for _, i := range importsOfModule(t) {
		if objection := i.objection(); objection != "" {
			t.Error(objection)
		}
	}
}

func TestObjectionsToImports(t *testing.T) {
	t.Parallel()
	const code, test = false, true
	tests := []struct {
		name   string
		i      importing
		object bool
	}{
		{"the loop uses the wire", importing{"rewind", code, module + "/zvm"}, false},
		{"the wire never uses the loop", importing{"zvm", code, module + "/rewind"}, true},
		{"the wire's tests never use the loop", importing{"zvm", test, module + "/rewind"}, true},
		{"the wire's tests use the simulator", importing{"zvm", test, module + "/zvm/zvmtest"}, false},
		{"the wire never uses the simulator", importing{"zvm", code, module + "/zvm/zvmtest"}, true},
		{"the simulator shares nothing with the wire", importing{"zvm/zvmtest", code, module + "/zvm"}, true},
		{"the loop never asks for a verdict", importing{"rewind", code, module + "/rewind/gate"}, true},
		{"the catalogue's file is injected", importing{"rewind/gate", code, module + "/catalog/file"}, true},
		{"tests inject the catalogue's file", importing{"rewind/gate", test, module + "/catalog/file"}, false},
		{"the core knows no adapter", importing{"rewind", test, module + "/adapters/mcp"}, true},
		{"the command line wraps the server", importing{"adapters/cli", code, module + "/adapters/mcp"}, false},
		{"the server never wraps the command line", importing{"adapters/mcp", code, module + "/adapters/cli"}, true},
		{"a room's inner packages are its own", importing{"adapters/mcp", code, module + "/adapters/mcp/internal/x"}, false},
		{"tasks know nothing of HTTP", importing{"task", code, "net/http"}, true},
		{"the catalogue has no clock", importing{"catalog", code, "time"}, true},
		{"a prefix of a name is another name", importing{"catalog", code, "network"}, false},
		{"the wire retries with a library", importing{"zvm", code, "github.com/hashicorp/go-retryablehttp"}, false},
		{"the core takes no other module", importing{"rewind", code, "github.com/spf13/cobra"}, true},
		{"tests compare with a library", importing{"rewind", test, "github.com/google/go-cmp/cmp"}, false},
		{"code compares without one", importing{"rewind", code, "github.com/google/go-cmp/cmp"}, true},
		{"adapters choose their libraries", importing{"adapters/cli", code, "github.com/spf13/cobra"}, false},
		{"a package without a room", importing{"util", code, "fmt"}, true},
		{"an import of a package without a room", importing{"rewind", code, module + "/util"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.i.objection(); (got != "") != tt.object {
				t.Errorf("objection to %+v = %q, want one: %t", tt.i, got, tt.object)
			}
		})
	}
}

// TestConsumersCompileNoAdapter follows what importing the core pulls in.
func TestConsumersCompileNoAdapter(t *testing.T) {
	t.Parallel()
	edges := map[string][]string{}
	for _, i := range importsOfModule(t) {
		if inner, ok := inModule(i.target); ok && !i.inTest {
			edges[i.pkg] = append(edges[i.pkg], inner)
		}
	}
	for _, consumed := range []string{"task", "zvm", "zvm/zvmtest", "catalog", "rewind", "rewind/gate"} {
		seen := map[string]bool{}
		for queue := []string{consumed}; len(queue) > 0; queue = queue[1:] {
			pkg := queue[0]
			if seen[pkg] {
				continue
			}
			seen[pkg] = true
			queue = append(queue, edges[pkg]...)
			if within(pkg, []string{"adapters", "examples", "catalog/file", "catalog/shell"}) {
				t.Errorf("importing %s compiles %s", consumed, pkg)
			}
		}
	}
}

func TestTopLevelHoldsNothingElse(t *testing.T) {
	t.Parallel()
	allowed := []string{
		"adapters", "catalog", "examples", "rewind", "task", "zvm",
		"CHANGELOG.md", "Makefile", "README.md", "doc.go", "floors_test.go", "go.mod", "go.sum",
		".ci", ".editorconfig", ".gitattributes", ".gitignore", ".golangci.yml",
		// Never tracked.
		".bin", ".git", ".idea", ".vscode", ".DS_Store",
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(allowed, entry.Name()) {
			t.Errorf("%s does not belong at the top level", entry.Name())
		}
	}
}

// TestEveryLawHasATest asks for at least one test named after each of the ten
// laws, TestLaw1 to TestLaw10, the number followed by anything but a digit.
func TestEveryLawHasATest(t *testing.T) {
	t.Parallel()
	laws := map[string]string{
		"1":  "a Guard is a proof",
		"2":  "a write is never sent twice by itself",
		"3":  "none or several is a hard stop",
		"4":  "bounded",
		"5":  "what is opened is closed",
		"6":  "unknown is not safe, and a broken gate denies",
		"7":  "secrets stay secret",
		"8":  "files arrive whole or not at all",
		"9":  "no hidden waits, no hidden goroutines, no globals",
		"10": "evidence, not prose",
	}
	named := regexp.MustCompile(`^TestLaw([0-9]+)`)
	tested := map[string]bool{}
	eachFile(t, 0, func(name string, file *ast.File) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Recv != nil {
				continue
			}
			if match := named.FindStringSubmatch(function.Name.Name); match != nil {
				tested[match[1]] = true
			}
		}
	})
	for law := range tested {
		if _, ok := laws[law]; !ok {
			t.Errorf("a test is named after law %s, which does not exist", law)
		}
	}
	maps.DeleteFunc(laws, func(law, _ string) bool { return tested[law] })
	if diff := cmp.Diff(map[string]string{}, laws); diff != "" {
		t.Errorf("laws without a test (-want +got):\n%s", diff)
	}
}
