package shell

import (
	"slices"
	"strings"
)

// option is one option of a program, as "-l" or "--limit", and its value if it takes one.
type option struct {
	name  string
	value word
}

// grammar says which options of a program take a value: the letters of short ones, the names of long ones.
type grammar struct {
	short string
	long  string
}

func (g grammar) longTakesValue(name string) bool {
	for long := range strings.FieldsSeq(g.long) {
		if long == name {
			return true
		}
	}
	return false
}

// leading splits the options in front of the first operand from the rest. It is false if that cannot be told.
func (g grammar) leading(words []word) (options []option, rest []word, ok bool) {
	for len(words) > 0 {
		w := words[0]
		switch {
		case w.splits, strings.HasPrefix(w.text, string(hole)):
			return options, words, false
		case w.text == "--":
			return options, words[1:], true
		case len(w.text) < 2 || w.text[0] != '-':
			return options, words, true
		}
		found, took, ok := g.option(words)
		if !ok {
			return options, words, false
		}
		options = append(options, found...)
		words = words[took:]
	}
	return options, nil, true
}

// all splits the options of a program that takes them anywhere from its operands.
func (g grammar) all(words []word) (options []option, operands []word, ok bool) {
	for {
		found, rest, ok := g.leading(words)
		options = append(options, found...)
		if !ok {
			return options, append(operands, rest...), false
		}
		if ended := len(words) - len(rest); ended > 0 && words[ended-1].text == "--" || len(rest) == 0 {
			return options, append(operands, rest...), true
		}
		operands, words = append(operands, rest[0]), rest[1:]
	}
}

// option reads the option, or the group of options, that the words begin with.
func (g grammar) option(words []word) (options []option, took int, ok bool) {
	text := words[0].text
	if strings.HasPrefix(text, "--") {
		name, value, given := strings.Cut(text, "=")
		if strings.ContainsRune(name, hole) {
			return nil, 0, false
		}
		if given || !g.longTakesValue(name) {
			return []option{{name, plain(value)}}, 1, true
		}
		return withValue(options, name, words)
	}
	for i, letter := range text[1:] {
		name, rest := "-"+string(letter), text[1:][i+len(string(letter)):]
		switch {
		case letter == hole:
			return nil, 0, false
		case !strings.ContainsRune(g.short, letter):
			options = append(options, option{name: name})
		case rest != "":
			return append(options, option{name, plain(rest)}), 1, true
		default:
			return withValue(options, name, words)
		}
	}
	return options, 1, true
}

func withValue(options []option, name string, words []word) ([]option, int, bool) {
	if len(words) < 2 || words[1].splits {
		return nil, 0, false
	}
	return append(options, option{name, words[1]}), 2, true
}

// has reports whether one of these options is given.
func has(options []option, names ...string) bool {
	_, ok := valueOf(options, names...)
	return ok
}

// valueOf returns the value of the last of these options.
func valueOf(options []option, names ...string) (word, bool) {
	var value word
	found := false
	for _, o := range options {
		for _, name := range names {
			if o.name == name {
				value, found = o.value, true
			}
		}
	}
	return value, found
}

// without returns the options but those of these names, which mean something else to the program.
func without(options []option, names ...string) []option {
	return slices.DeleteFunc(slices.Clone(options), func(o option) bool { return slices.Contains(names, o.name) })
}
