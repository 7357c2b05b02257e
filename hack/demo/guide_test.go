package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

// word is a word of a command in a shell, with parts in single quotes.
var word = regexp.MustCompile(`(?:'[^']*'|[^\s'])+`)

// inner is a command whose output is an argument of another.
var inner = regexp.MustCompile(`\$\(([^)]*)\)`)

// commands returns the words of each command of a guide.
func commands(guide string) (all [][]string) {
	for line := range strings.Lines(guide) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") || strings.HasPrefix(line, "export ") {
			continue
		}
		for _, nested := range inner.FindAllStringSubmatch(line, -1) {
			all = append(all, strings.Fields(nested[1]))
		}
		var command []string
		for _, w := range append(word.FindAllString(inner.ReplaceAllString(line, "-"), -1), "&&") {
			if w != "&&" && w != "|" {
				command = append(command, strings.ReplaceAll(w, "'", ""))
				continue
			}
			all, command = append(all, command), nil
		}
	}
	return all
}

// arguments returns those of a kubectl command that are no flags, and the values of -l and -p.
func arguments(words []string) (args []string, selector, patch string) {
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-l":
			i++
			selector = words[i]
		case w == "-p":
			i++
			patch = words[i]
		case slices.Contains([]string{"-o", "-f", "--type"}, w):
			i++
		case !strings.HasPrefix(w, "-"):
			args = append(args, w)
		}
	}
	return args, selector, patch
}

// guided is what the commands of a guide find: the objects of the demo.
type guided struct {
	t       *testing.T
	scheme  *runtime.Scheme
	objects []string
}

// kind returns the kind that a text names, empty for none.
func (g *guided) kind(text string) string {
	resource := plugin.Resource(text)
	for kind := range g.scheme.KnownTypes(pcapi.GroupVersion) {
		if resource != "" && strings.EqualFold(kind, resource) {
			return kind
		}
	}
	g.t.Errorf("there is no resource %q", text)
	return ""
}

func (g *guided) has(kind, name string) {
	if !slices.Contains(g.objects, kind+"/"+name) {
		g.t.Errorf("the demo has no %s %q", kind, name)
	}
}

// check checks that what a kubectl command names exists.
func (g *guided) check(words []string) {
	args, selector, patch := arguments(words)
	if group, found := strings.CutPrefix(selector, pcapi.GroupLabel+"="); found {
		g.has("VmGroup", group)
	} else if selector != "" {
		g.t.Errorf("the label %q is not one of the operator", selector)
	}
	verb, args := args[0], args[1:]
	var kind string
	switch verb {
	case "events", "apply":
		return
	case "cordon", "uncordon":
		g.has("Node", args[0])
		return
	case "explain":
		field, _, _ := strings.Cut(args[0], ".")
		g.kind(field)
		return
	case "get", "wait", "patch", "scale", "delete":
		of, name, slash := strings.Cut(args[0], "/")
		if slash {
			args = append(args, name)
		}
		for resource := range strings.SplitSeq(of, ",") {
			kind = g.kind(resource)
		}
		for _, name := range args[1:] {
			g.has(kind, name)
		}
	default:
		g.t.Errorf("this test does not know kubectl %s", verb)
	}
	if patch == "" || kind == "" {
		return
	}
	object, err := g.scheme.New(pcapi.GroupVersion.WithKind(kind))
	if err != nil {
		g.t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewBufferString(patch))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(object); err != nil {
		g.t.Errorf("patch %s of a %s: %v", patch, kind, err)
	}
}

func TestCommandsOfTheGuideWork(t *testing.T) {
	scheme, err := plugin.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	for name, on := range backends {
		objects := []string{"Node/worker-1", "Node/worker-2", "VmGroup/" + invalidGroupName, "VmGroup/vmgroup-sample"}
		for object := range on.expected() {
			objects = append(objects, object)
		}
		group := &pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: invalidGroupName}}
		for _, command := range commands(on.guide()) {
			if len(command) == 0 {
				continue
			}
			t.Run(name+" "+strings.Join(command, " "), func(t *testing.T) {
				g := guided{t: t, scheme: scheme, objects: objects}
				switch command[0] {
				case "kubectl":
					g.check(command[1:])
				case "bin/kubectl-privatecloud":
					setup := plugintest.Setup{Client: plugintest.NewClient(t, client.Object(group.DeepCopy()))}
					if result := setup.Run(t.Context(), command[1:]...); result.Code != 0 {
						t.Error(result)
					}
				case "sed":
					if files, err := filepath.Glob(filepath.Join("..", "..", command[2])); err != nil || len(files) == 0 {
						t.Errorf("%s has no files: %v", command[2], err)
					}
				case "make":
					makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
					if err != nil || !strings.Contains(string(makefile), "kubectl-privatecloud") {
						t.Errorf("the Makefile has no target %s: %v", command[1], err)
					}
				}
			})
		}
	}
}
