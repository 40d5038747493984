package zvmtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// handlers is what the package's source says of its handlers: names that a
// handler reads cannot be seen from outside, since unknown ones are ignored.
type handlers struct {
	functions map[string]*reading
	routes    map[string]string // "METHOD /pattern" to the handler's name
}

// reading is what one function reads of a request, and what it calls.
type reading struct {
	query, body, calls []string
}

func readHandlers(t *testing.T) *handlers {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	h := &handlers{functions: map[string]*reading{}, routes: map[string]string{}}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				h.add(function)
			}
		}
	}
	return h
}

// add notes what a function reads. Functions and methods of one name are
// taken together: that can only find too much.
func (h *handlers) add(function *ast.FuncDecl) {
	r := h.functions[function.Name.Name]
	if r == nil {
		r = &reading{}
		h.functions[function.Name.Name] = r
	}
	structs := map[string]*ast.StructType{}
	ast.Inspect(function, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ValueSpec:
			if fields, ok := node.Type.(*ast.StructType); ok {
				structs[node.Names[0].Name] = fields
			}
		case *ast.CallExpr:
			r.addCall(node, structs)
			h.addRoute(node)
		}
		return true
	})
}

func (r *reading) addCall(call *ast.CallExpr, structs map[string]*ast.StructType) {
	name := calledName(call)
	r.calls = append(r.calls, name)
	switch name {
	case "param", "dateRange":
		r.query = append(r.query, literals(call.Args)...)
	case "decode":
		if address, ok := call.Args[0].(*ast.UnaryExpr); ok {
			if variable, ok := address.X.(*ast.Ident); ok {
				r.body = append(r.body, fieldNames(structs[variable.Name], "")...)
			}
		}
	}
}

// addRoute notes a line of the route table: get("/…", handler) and the like.
func (h *handlers) addRoute(call *ast.CallExpr) {
	texts := literals(call.Args)
	handler, ok := lastOf(call.Args).(*ast.Ident)
	if !ok || len(texts) == 0 || !strings.HasPrefix(lastOf(texts), "/") {
		return
	}
	method := strings.ToUpper(calledName(call))
	if len(texts) == 2 {
		method = texts[0]
	}
	h.routes[method+" "+lastOf(texts)] = handler.Name
}

// reads follows the calls of a route's handler.
func (h *handlers) reads(t *testing.T, route string) (query, body []string) {
	t.Helper()
	if h.functions[h.routes[route]] == nil {
		t.Errorf("the handler of %s was not found in the source", route)
		return nil, nil
	}
	queries, bodies, seen := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for queue := []string{h.routes[route]}; len(queue) > 0; queue = queue[1:] {
		r := h.functions[queue[0]]
		if r == nil || seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		for _, name := range r.query {
			queries[name] = true
		}
		for _, name := range r.body {
			bodies[name] = true
		}
		queue = append(queue, r.calls...)
	}
	return slices.Sorted(maps.Keys(queries)), slices.Sorted(maps.Keys(bodies))
}

func calledName(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return function.Name
	case *ast.SelectorExpr:
		return function.Sel.Name
	}
	return ""
}

func literals(args []ast.Expr) []string {
	var texts []string
	for _, arg := range args {
		if literal, ok := arg.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

func lastOf[T any](list []T) T {
	var zero T
	if len(list) == 0 {
		return zero
	}
	return list[len(list)-1]
}

// fieldNames lists the JSON names of a struct type, nested ones with dots.
func fieldNames(fields *ast.StructType, prefix string) []string {
	if fields == nil {
		return nil
	}
	var names []string
	for _, field := range fields.Fields.List {
		inner := field.Type
		if pointer, ok := inner.(*ast.StarExpr); ok {
			inner = pointer.X
		}
		nested, _ := inner.(*ast.StructType)
		for _, ident := range field.Names {
			name := prefix + ident.Name
			if tag := jsonTag(field.Tag); tag != "" {
				name = prefix + tag
			}
			names = append(append(names, name), fieldNames(nested, name+".")...)
		}
	}
	return names
}

func jsonTag(literal *ast.BasicLit) string {
	if literal == nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(literal.Value, "`")).Get("json"), ",")
	return name
}
