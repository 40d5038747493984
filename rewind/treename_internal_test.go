package rewind

import "testing"

func TestNamesThatMeanSomethingElseSomewhereAreUnsafe(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", ".", "..", "a/b", `..\x`, "C:x", "notes:secret", "a\x00b", "a\r\nb", "a?b", "a*b", "a<b", "a>b", `a"b`, "a|b",
		"CON", "nul.txt", "aux.c", "COM1 ", "COM¹", "com1 .txt", "LPT9", "CONIN$", "x.", "x ", "x. .", "a\xffb", string(make([]byte, 256)),
	} {
		if whyUnsafe(name) == "" {
			t.Errorf("%q is taken for safe", name)
		}
	}
	for _, name := range []string{".bashrc", "...x", "CONFIG", "com", "COM10", "COMA", "nulls.txt", " x", "straße", "-rf", "~", "$HOME"} {
		if why := whyUnsafe(name); why != "" {
			t.Errorf("%q is unsafe because %s", name, why)
		}
	}
}

func TestNamesThatFoldToOneAreAlike(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"Report.txt", "REPORT.TXT"}, {"straße", "STRASSE"}, {"STRAẞE", "strasse"}, {"ΣΑΣ", "σας"}, {"\u212Aey", "key"}} {
		if folded(pair[0]) != folded(pair[1]) {
			t.Errorf("%q and %q are told apart", pair[0], pair[1])
		}
	}
	if folded("a") == folded("b") {
		t.Error("different names are taken for one")
	}
}
