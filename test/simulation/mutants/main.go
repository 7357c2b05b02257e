// Command mutants puts bugs into the code, one at a time, and shows which of them the simulation
// catches, by which invariant, and after how many operations.
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
)

var operations = flag.Int("operations", 200000, "after how many operations of all profiles together a mutant counts as missed")

func main() {
	flag.Parse()
	missed, tried := 0, 0
	for _, m := range mutants {
		if flag.NArg() > 0 && !strings.Contains(m.name, flag.Arg(0)) {
			continue
		}
		tried++
		result, err := m.run()
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutant %q: %v\n", m.name, err)
			os.Exit(1)
		}
		if result == "" {
			missed++
			result = "MISSED"
		}
		fmt.Printf("%-75s %s\n", m.name, result)
	}
	if tried == 0 {
		fmt.Fprintf(os.Stderr, "no mutant has %q in its name\n", flag.Arg(0))
		os.Exit(1)
	}
	if missed > 0 {
		fmt.Fprintf(os.Stderr, "%d mutants were missed\n", missed)
		os.Exit(1)
	}
}

var caught = regexp.MustCompile(`(?s)caught after (\d+) operations: profile ([^,]+), seed (\d+): ([^\n]+)`)

// run returns how the mutant was caught, empty if it was not.
func (m mutant) run() (string, error) {
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
	folder, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	changed, overlay := filepath.Join(folder, "mutant.go"), filepath.Join(folder, "overlay.json")
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
	out, err := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-run", "^TestRandomRuns$", "./test/simulation",
		"-args", "-operations", fmt.Sprint(*operations), "-shorten=false").CombinedOutput()
	if found := caught.FindStringSubmatch(string(out)); len(found) == 5 {
		return fmt.Sprintf("%7s  %-16s seed %-4s %s", found[1], found[2], found[3], found[4]), nil
	}
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return "", nil
}
