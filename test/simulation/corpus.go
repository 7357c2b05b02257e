package simulation

import (
	"fmt"
	"os"
	"strings"
)

// recording is a trace that is kept in a file, to be replayed by each test.
type recording struct {
	// profile and invariant are names: the invariant is the one that the trace violated when it was
	// recorded. Mutant is the bug that it showed, if that was put into the code.
	profile, invariant, mutant string
	// about says what happens, in a sentence.
	about string
	trace []string
}

// headerLine is a line before the trace: a key, and what it stands for.
type headerLine struct {
	key   string
	value *string
}

func (r *recording) header() []headerLine {
	return []headerLine{{"profile:", &r.profile}, {"invariant:", &r.invariant}, {"mutant:", &r.mutant}, {"about:", &r.about}}
}

// write stores a recording in a file.
func (r *recording) write(file string) error {
	var text strings.Builder
	for _, line := range r.header() {
		text.WriteString(strings.TrimSpace(line.key+" "+*line.value) + "\n")
	}
	text.WriteString("\n" + strings.Join(r.trace, "\n") + "\n")
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

// readRecording reads a recording from a file.
func readRecording(file string) (*recording, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	head, trace, _ := strings.Cut(strings.TrimSpace(string(text)), "\n\n")
	r := &recording{trace: strings.Split(trace, "\n")}
	lines := strings.Split(head, "\n")
	for i, line := range r.header() {
		if i >= len(lines) || !strings.HasPrefix(lines[i], line.key) {
			return nil, fmt.Errorf("%s: line %d has to begin with %q", file, i+1, line.key)
		}
		*line.value = strings.TrimSpace(strings.TrimPrefix(lines[i], line.key))
	}
	return r, nil
}
