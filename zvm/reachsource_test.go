package zvm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// givenByTheServer is the one path that stands in no source: where a download link leads.
const givenByTheServer = "GET /v1/downloads/{link}"

// TestLaw4_TheSourceNamesNothingElse reads the whole module for the paths of the API, and for requests that are made
// anywhere but in this package.
func TestLaw4_TheSourceNamesNothingElse(t *testing.T) {
	t.Parallel()
	named := []string{givenByTheServer}
	eachSource(t, func(name string, file *ast.File) {
		inWire := filepath.Dir(name) == "zvm"
		whole := &calls{}
		ast.Inspect(file, whole.visit)
		switch {
		case !inWire && whole.requests != nil && !strings.HasPrefix(name, "adapters/proxy"): // which calls MCP servers
			t.Errorf("%s makes requests of its own: %v", name, whole.requests)
		case !inWire && whole.prefixes != nil:
			t.Errorf("%s joins paths of its own from %v", name, whole.prefixes)
		case !inWire:
			for _, path := range whole.paths {
				if !slices.ContainsFunc(reach(t), func(listed string) bool { return strings.Contains(listed, " "+path) }) {
					t.Errorf("%s names %s, which is beyond the reach", name, path)
				}
			}
			return
		}
		for _, declared := range file.Decls {
			one := &calls{}
			ast.Inspect(declared, one.visit)
			methods := one.methods
			if len(methods) == 0 {
				methods = whole.methods
			}
			if len(one.paths) > 0 && len(methods) != 1 {
				t.Errorf("%s: %v is sent by %v: one function, one method", name, one.paths, methods)
			}
			for _, path := range one.paths {
				named = append(named, strings.Join(methods, " or ")+" "+path)
			}
		}
	})
	slices.Sort(named)
	if diff := cmp.Diff(withoutNames(reach(t)), withoutNames(slices.Compact(named))); diff != "" {
		t.Errorf("what the source names (-listed +named):\n%s", diff)
	}
}

// withoutNames takes out what a variable part is called.
func withoutNames(calls []string) []string {
	var plain []string
	for _, c := range calls {
		segments := strings.Split(c, "/")
		for i, s := range segments {
			if strings.HasPrefix(s, "{") {
				segments[i] = "{}"
			}
		}
		plain = append(plain, strings.Join(segments, "/"))
	}
	return plain
}

// calls are the methods and paths that a piece of source names, the prefixes that a path could be joined from unseen, and what
// makes requests.
type calls struct{ methods, paths, prefixes, requests []string }

// requesting is what net/http makes requests with.
var requesting = []string{
	"NewRequest", "NewRequestWithContext", "Get", "Head", "Post", "PostForm", "Client", "DefaultClient", "Transport", "DefaultTransport",
}

func (c *calls) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "apiPath" && len(n.Args) > 1 && literal(n.Args[0]) == "v1" {
			path := ""
			for _, arg := range n.Args {
				path += "/" + orVariable(literal(arg))
			}
			c.paths = append(c.paths, path)
			return false
		}
	case *ast.BinaryExpr:
		if path := joined(n); isAPI(path) {
			c.paths = append(c.paths, path)
			return false
		}
	case *ast.BasicLit:
		switch path := literal(n); {
		case isAPI(path):
			c.paths = append(c.paths, path)
		case strings.Trim(path, "/") == "v1":
			c.prefixes = append(c.prefixes, path)
		}
	case *ast.SelectorExpr:
		c.selected(n)
	}
	return true
}

func (c *calls) selected(n *ast.SelectorExpr) {
	if n.Sel.Name == "RoundTrip" {
		c.requests = append(c.requests, n.Sel.Name)
	}
	pkg, ok := n.X.(*ast.Ident)
	if !ok || pkg.Name != "http" && pkg.Name != "retryablehttp" {
		return
	}
	if method, ok := strings.CutPrefix(n.Sel.Name, "Method"); ok {
		if method = strings.ToUpper(method); !slices.Contains(c.methods, method) {
			c.methods = append(c.methods, method)
		}
	}
	if slices.Contains(requesting, n.Sel.Name) {
		c.requests = append(c.requests, "http."+n.Sel.Name)
	}
}

// isAPI leaves out the bare prefixes, which are for looking at a path and not for making one.
func isAPI(path string) bool {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		rest, ok = strings.CutPrefix(path, "/auth/")
	}
	return ok && rest != ""
}

func joined(e ast.Expr) string {
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		return joined(sum.X) + joined(sum.Y)
	}
	return orVariable(literal(e))
}

func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}

func orVariable(text string) string {
	if text == "" {
		return "{}"
	}
	return text
}

// eachSource visits the module's code, without tests and without the simulator, which serves what others send.
func eachSource(t *testing.T, visit func(name string, file *ast.File)) {
	t.Helper()
	const root = ".."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "zvm/zvmtest" || d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			visit(name, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
