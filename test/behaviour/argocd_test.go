package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// healthCheck is the script for Argo CD in docs/objects.md, without its indentation.
var healthCheck = sync.OnceValues(func() (string, error) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return "", err
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "objects.md"))
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile("(?s)\n( +)health\\.lua: \\|\n(.*?)```").FindSubmatch(page)
	if found == nil {
		return "", errors.New("docs/objects.md has no health.lua")
	}
	return strings.ReplaceAll(string(found[2]), "\n"+string(found[1])+"  ", "\n"), nil
})

// argoHealth returns the health that Argo CD shows of an object.
func argoHealth(object client.Object) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		fresh, err := latest(object)(ctx)
		if err != nil {
			return "", err
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fresh)
		if err != nil {
			return "", err
		}
		return healthOf(fields)
	}
}

func healthOf(fields map[string]any) (string, error) {
	script, err := healthCheck()
	if err != nil {
		return "", err
	}
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", luaValue(state, fields))
	if err := state.DoString(script); err != nil {
		return "", err
	}
	health, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", fmt.Errorf("the script returns %s, want a table", state.Get(-1).Type())
	}
	if health.RawGetString("message").String() == "" {
		return "", errors.New("the health has no message")
	}
	return health.RawGetString("status").String(), nil
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for name, field := range value {
			table.RawSetString(name, luaValue(state, field))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(luaValue(state, item))
		}
		return table
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	case string:
		return lua.LString(value)
	}
	return lua.LNil
}

func TestArgoCDHealth(t *testing.T) { argoCDCases.run(t) }

var argoCDCases = cases{
	"objects of all kinds are Ready: Healthy": func(t *T) {
		f := newFixture(t, gpuHosts(100, 100))
		group, _ := f.readyGroup("group", 1)
		f.createNodes()
		gpu := f.createGPUInfo("job", 10)
		for _, object := range []client.Object{f.object, f.readyVM("web"), group, f.readyNetwork("net"), gpu} {
			t.Eventually(argoHealth(object)).Should(Equal("Healthy"), "%T", object)
		}
	},
	"a VM that was not reconciled: Progressing": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		stored := asStored(t, "vms", testkit.VM(f.namespace, "web", func(vm *pcapi.VM) { vm.Spec.CloudRef = f.reference() }))
		t.Expect(healthOf(stored.Object)).To(Equal("Progressing"))
	},
	"the cloud prohibits the name of a VM: Degraded": func(t *T) {
		_, vm := prohibited(t)
		t.Expect(argoHealth(vm)(t.Context())).To(Equal("Degraded"))
	},
	"a VM is paused: Suspended": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		annotate(t, vm, pcapi.PausedAnnotation, "true")
		t.Eventually(argoHealth(vm)).Should(Equal("Suspended"))
	},
	"the cloud is unreachable: not Healthy": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.Disconnect()
		t.Eventually(argoHealth(f.object)).Should(Equal("Progressing"))
	},
}
