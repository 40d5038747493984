package zvmtest_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

var update = flag.Bool("update", false, "write SUPPORT.md anew instead of comparing it")

const supportFile = "SUPPORT.md"

// TestContract compares the server and the client with the vendor's OpenAPI
// document, which is not part of this repository: ZVM_OPENAPI names it,
// relative to the module.
func TestContract(t *testing.T) {
	t.Parallel()
	path := os.Getenv("ZVM_OPENAPI")
	if path == "" {
		t.Skip("ZVM_OPENAPI does not name the vendor's OpenAPI document")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join("..", "..", path)
	}
	doc := readContract(t, path)
	t.Run("routes", func(t *testing.T) { t.Parallel(); checkRoutes(t, doc) })
	t.Run("what the server reads", func(t *testing.T) { t.Parallel(); checkReads(t, doc) })
	t.Run("answers", func(t *testing.T) { t.Parallel(); checkAnswers(t, doc) })
	t.Run("requests of the client", func(t *testing.T) { t.Parallel(); checkClient(t, doc) })
	t.Run("coverage", func(t *testing.T) { t.Parallel(); checkCoverage(t, readContract(t, path)) })
}

func checkRoutes(t *testing.T, doc *contract) {
	outside := newUsage(outsideTheDocument)
	for _, op := range zvmtest.Start(t).Support() {
		name := op.Method + " " + op.Path
		if doc.operation(op.Method, op.Path) == nil && !outside.use(name) {
			t.Errorf("%s is not in the document", name)
		}
	}
	outside.report(t, "routes outside the document")
}

// checkReads compares the names that the handlers read with the document's. A
// misspelt name would be ignored in silence.
func checkReads(t *testing.T, doc *contract) {
	source := readHandlers(t)
	names := 0
	for _, op := range zvmtest.Start(t).Support() {
		documented := doc.operation(op.Method, op.Path)
		if !op.Served || documented == nil || strings.HasPrefix(op.Path, "/auth/") {
			continue
		}
		name := op.Method + " " + op.Path
		query, body := source.reads(t, name)
		names += len(query)
		for _, field := range query {
			if !slices.ContainsFunc(queryNames(documented), equalFold(field)) {
				t.Errorf("%s reads the query name %s, which the document does not have", name, field)
			}
		}
		schema := bodySchema(documented, "application/json")
		for _, field := range body {
			if !hasField(schema, strings.Split(field, ".")) {
				t.Errorf("%s reads %s of the body, which the document does not have", name, field)
			}
		}
		if schema != nil && len(body) == 0 {
			t.Errorf("%s has a body in the document and reads nothing of it", name)
		}
	}
	if names < 20 {
		t.Errorf("only %d query names were found in the source", names)
	}
}

// checkAnswers drives servers of several key cases and forms, so that every
// route answers with rich data, and compares each field.
func checkAnswers(t *testing.T, doc *contract) {
	extras, deviations := newUsage(extraFields), newUsage(otherForms)
	problems := map[string]bool{} // each once, however many rows have it
	for _, switches := range [][]zvmtest.Switch{
		nil,
		{zvmtest.CamelCaseKeys, zvmtest.SessionAsArray},
		{zvmtest.IDsOnlyInLinks},
		{zvmtest.TimestampsWithoutFraction, zvmtest.CheckpointsDescending},
	} {
		server := start(t, zvmtest.WithSwitch(switches...), zvmtest.WithTokenTTL(time.Hour))
		for _, e := range drive(t, server) {
			operation := doc.operation(e.method, e.pattern)
			if operation == nil {
				continue
			}
			name := e.method + " " + e.pattern
			if body := documented(name, e.answer.body); body != e.answer.body && deviations.use(name) {
				e.answer.body = body
			}
			for _, problem := range doc.compare(operation, e.answer, extras) {
				problems[fmt.Sprintf("%v: %s: %s", switches, name, problem)] = true
			}
		}
	}
	for _, problem := range slices.Sorted(maps.Keys(problems)) {
		t.Error(problem)
	}
	extras.report(t, "fields outside the document")
	deviations.report(t, "answers of another form")
}

// checkCoverage prints which operations of the document the server knows, and
// holds SUPPORT.md to it.
func checkCoverage(t *testing.T, doc *contract) {
	server := start(t, zvmtest.WithTokenTTL(time.Hour))
	support := server.Support()
	for _, e := range drive(t, server) {
		if operation := doc.operation(e.method, e.pattern); operation != nil {
			e.answer.body = documented(e.method+" "+e.pattern, e.answer.body)
			doc.compare(operation, e.answer, newUsage(extraFields))
		}
	}
	t.Log("coverage of the document:\n" + doc.coverage(support))
	want := doc.supportPage(support)
	if *update {
		if err := os.WriteFile(supportFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(supportFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is out of date; run this test with -update (-want +got):\n%s", supportFile, diff)
	}
}

// TestSupportPageListsExactlyTheRoutes needs no document.
func TestSupportPageListsExactlyTheRoutes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(supportFile)
	if err != nil {
		t.Fatal(err)
	}
	var listed []zvmtest.Operation
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`/") {
			continue
		}
		listed = append(listed, zvmtest.Operation{
			Method: strings.TrimSpace(cells[0]),
			Path:   strings.Trim(strings.TrimSpace(cells[1]), "`"),
			Served: strings.TrimSpace(cells[2]) == "served",
		})
	}
	want := sorted(zvmtest.Start(t).Support())
	if diff := cmp.Diff(want, sorted(listed)); diff != "" {
		t.Errorf("operations in %s (-want +got):\n%s", supportFile, diff)
	}
}

func sorted(ops []zvmtest.Operation) []zvmtest.Operation {
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b zvmtest.Operation) int {
		return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
	})
	return ops
}
