// Command mutants puts bugs into the code, one at a time, and shows whether the recorded trace of each
// catches it, and after how many operations of random runs, by which invariant, it is caught.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/privatecloud/operator/test/corpus"
)

var (
	operations = flag.Int("operations", 200000, "after how many operations of all profiles together a mutant counts as missed")
	corpusOnly = flag.Bool("corpus-only", false, "replay the recorded traces only")
	record     = flag.Bool("record", false, "record a trace for each mutant that no trace catches")
)

// simulation is the folder of the package that the mutants are tried with.
const simulation = "test/simulation"

func main() {
	flag.Parse()
	tried, mistakes := 0, 0
	for _, m := range mutants {
		if flag.NArg() > 0 && !strings.Contains(m.name, flag.Arg(0)) {
			continue
		}
		tried++
		r, err := m.try()
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutant %q: %v\n", m.name, err)
			os.Exit(1)
		}
		fmt.Printf("%-75s %-13s %s\n", m.name, r.trace, r.search)
		if r.mistake {
			mistakes++
		}
	}
	if tried == 0 {
		fmt.Fprintf(os.Stderr, "no mutant has %q in its name\n", flag.Arg(0))
		os.Exit(1)
	}
	if mistakes > 0 {
		fmt.Fprintf(os.Stderr, "%d mutants have no trace that catches them\n", mistakes)
		os.Exit(1)
	}
}

// result is how a mutant was caught.
type result struct {
	// trace says whether its trace catches it, and search how a random run does.
	trace, search string
	mistake       bool
}

// try builds the test with the mutant, replays its trace, and makes random runs.
func (m mutant) try() (r result, err error) {
	folder, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	test, err := m.build(folder)
	if err != nil {
		return r, err
	}
	if r.trace, err = m.replay(test); err != nil {
		return r, err
	}
	caught := r.trace == byTrace
	if *corpusOnly {
		r.mistake = r.trace == notByTrace
		return r, nil
	}
	arguments := []string{"-shorten=false"}
	if *record && !caught {
		arguments = []string{"-mutant", m.name, "-trace-file", filepath.Join("..", "..", m.trace())}
	}
	if r.search, err = m.search(test, arguments...); err != nil {
		return r, err
	}
	r.mistake = !caught && (r.search == missed || !*record)
	return r, nil
}

// build builds the test with the mutant, and returns its file.
func (m mutant) build(folder string) (string, error) {
	file, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if bytes.Count(text, []byte(m.old)) != 1 {
		return "", fmt.Errorf("%s has the text %d times: %s", m.file, bytes.Count(text, []byte(m.old)), m.old)
	}
	changed, overlay, test := filepath.Join(folder, "mutant.go"), filepath.Join(folder, "overlay.json"), filepath.Join(folder, "test")
	if err := os.WriteFile(changed, bytes.Replace(text, []byte(m.old), []byte(m.new), 1), 0o600); err != nil {
		return "", err
	}
	listed, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, listed, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", test, "./"+simulation).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return test, nil
}

// What is printed of a mutant.
const (
	byTrace    = "trace: yes"
	notByTrace = "trace: NO"
	noTrace    = "no trace"
	missed     = "MISSED"
)

// slug returns the name of the trace of a mutant.
func (m mutant) slug() string { return strings.ReplaceAll(m.name, " ", "-") }

// trace returns the file of the trace of a mutant, in the module.
func (m mutant) trace() string { return filepath.Join(corpus.Folder, m.slug()+".txt") }

// replay returns whether the trace of the mutant catches it.
func (m mutant) replay(test string) (string, error) {
	if _, err := os.Stat(m.trace()); err != nil {
		return noTrace, nil //nolint:nilerr // it may be missing
	}
	out, err := run(test, "-test.run", "^TestCorpus$/^"+regexp.QuoteMeta(m.slug())+"$")
	switch {
	case strings.Contains(out, "caught by the trace: "):
		return byTrace, nil
	case err != nil && !strings.Contains(out, "--- FAIL: TestCorpus/"):
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return notByTrace, nil
}

var caught = regexp.MustCompile(`caught after (\d+) operations: profile ([^,]+), seed (\d+): ([^\n]+)`)

// search returns how random runs catch the mutant.
func (m mutant) search(test string, arguments ...string) (string, error) {
	out, err := run(test, append([]string{"-test.run", "^TestRandomRuns$", "-operations", fmt.Sprint(*operations)}, arguments...)...)
	if found := caught.FindStringSubmatch(out); len(found) == 5 {
		return fmt.Sprintf("%7s  %-16s seed %-4s %s", found[1], found[2], found[3], found[4]), nil
	}
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return missed, nil
}

// run runs the test in its folder, and returns what it prints.
func run(test string, arguments ...string) (string, error) {
	command := exec.Command(test, arguments...)
	command.Dir = simulation
	out, err := command.CombinedOutput()
	return string(out), err
}
