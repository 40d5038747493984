package cli

import "testing"

func TestShellWordsSurviveAShell(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"https://127.0.0.1:8443": "https://127.0.0.1:8443",
		"/tmp/a b.pem":           "'/tmp/a b.pem'",
		"it's":                   `'it'\''s'`,
		"$(id)":                  "'$(id)'",
		"":                       "''",
	} {
		if got := shellWord(value); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", value, got, want)
		}
	}
}

func TestPlainTextShowsWhatATerminalWouldObey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Grüße, 世界 ~":     "Grüße, 世界 ~",
		"a\tb\nc\r":       `a\tb\nc\r`,
		"\x1b[2J\x00\x7f": `\x1b[2J\x00\x7f`,
		"\u202eabc\u2066": `\u202eabc\u2066`,
		"\u200b\ufeff":    `\u200b\ufeff`,
		"\u2028\u0085":    `\u2028\u0085`,
		"\U000e0041":      `\U000e0041`,
		"\xff\xc3":        `\xff\xc3`,
	} {
		if got := plain(text); got != want {
			t.Errorf("plain(%q) = %s, want %s", text, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b]8;;x\a", "\u202e\n", "\xff", "'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := plain(text)
		if plain(got) != got {
			t.Errorf("plain(%q) = %q, which is not plain", text, got)
		}
		for _, r := range got {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Errorf("plain(%q) lets %U through", text, r)
			}
		}
	})
}
