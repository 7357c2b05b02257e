package vsphere_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

func TestLostAnswerToACloneIsUncertain(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	create(t, c, cloud.CreateServer{Name: "before"})
	restore := v.Front.Answer(func(method string) (int, string) {
		if method == "CloneVM_Task" {
			return http.StatusBadGateway, "<html>bad gateway</html>"
		}
		return 0, ""
	})
	_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "perhaps"})
	restore()
	if !cloud.Uncertain(err) {
		t.Errorf("CreateServer: %v is not uncertain, though a gateway answered", err)
	}
}

func TestCloneThatIsRefusedForItsNameReturnsItsOwnVM(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	mine := cloud.CreateServer{Name: "mine", IdempotencyKey: "key-1"}
	created := create(t, c, mine)
	holder := `<object type="VirtualMachine">` + v.VM("mine").Self.Value + `</object>`
	restore := v.Front.Rewrite(func(method, body string) string {
		if method == "FindChild" || method == "FindAllByUuid" { // both look before the clone has made the VM
			return strings.NewReplacer("<name>mine<", "<name>none<", created.ID, "00000000-0000-4000-8000-000000000000").Replace(body)
		}
		return body
	})
	defer restore()
	defer v.Front.Answer(func(method string) (int, string) {
		if method == "CloneVM_Task" {
			return vcsim.Fault("DuplicateName", "<name>mine</name>", holder)
		}
		return 0, ""
	})()
	result, err := c.CreateServer(t.Context(), mine)
	if err != nil || result.Server.ID != created.ID {
		t.Errorf("CreateServer: %+v, %v, want %s", result, err, created.ID)
	}
	_, err = c.CreateServer(t.Context(), cloud.CreateServer{Name: "mine", IdempotencyKey: "key-2"})
	wantError(t, err, cloud.Taken)
	_, err = c.CreateServer(t.Context(), cloud.CreateServer{Name: "mine", IdempotencyKey: "key-1", CPU: 8})
	wantError(t, err, cloud.KeyReused)
}

func TestCloneOfAnotherThatDoesNotEndEndsTheOperation(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	create(t, c, cloud.CreateServer{Name: "stuck"})
	v.Change(v.VM("stuck").Self, types.PropertyChange{Name: "config.extraConfig", Val: []types.BaseOptionValue(nil)},
		types.PropertyChange{Name: "config.instanceUuid", Val: ""}, types.PropertyChange{Name: "summary.config.instanceUuid", Val: ""})
	restore := v.Front.Rewrite(func(method, body string) string {
		if method == "FindChild" { // before the other clone has begun
			return strings.Replace(body, "<name>stuck<", "<name>none<", 1)
		}
		return body
	})
	result, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "stuck", IdempotencyKey: "key-1"})
	restore()
	if err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	state, err := c.GetOperation(t.Context(), result.Operation)
	if err != nil || state.Done {
		t.Fatalf("GetOperation: %+v, %v; want it to go on", state, err)
	}
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	defer v.Front.Answer(func(method string) (int, string) {
		if method == "CurrentTime" {
			return http.StatusOK, envelope(`<CurrentTimeResponse xmlns="urn:vim25"><returnval>` + later + `</returnval></CurrentTimeResponse>`)
		}
		return 0, ""
	})()
	state, err = c.GetOperation(t.Context(), result.Operation)
	if err != nil || !state.Done {
		t.Fatalf("GetOperation an hour later: %+v, %v; want it done", state, err)
	}
	wantError(t, state.Err, cloud.Failed, "another clone", "cancel its task")
}
