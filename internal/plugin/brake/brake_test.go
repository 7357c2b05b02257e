package brake_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

const snapshot = "2026-01-02T03:04:05.000000006Z"

// age is how long the brake of a Cloud is on. It is shown in minutes, and is half a minute
// from the next, so that a slow test shows the same.
const age = 30*time.Minute + 30*time.Second

// cloud returns a Cloud whose brake is that of a snapshot, empty for none.
func cloud(name, brakedAt string) *pcapi.Cloud {
	c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if brakedAt == "" {
		c.Status.Conditions = []metav1.Condition{{Type: pcapi.BrakedCondition, Status: metav1.ConditionFalse, Reason: pcapi.ReleasedReason, Message: "no brake is on"}}
		return c
	}
	c.Status.BrakedSnapshot = brakedAt
	c.Status.Conditions = []metav1.Condition{{
		Type: pcapi.BrakedCondition, Status: metav1.ConditionTrue, Reason: pcapi.ServersVanishedReason,
		LastTransitionTime: metav1.NewTime(time.Now().Add(-age).Truncate(time.Second)),
		Message:            "snapshot " + brakedAt + " lacks 7 servers that VMs of this cluster record, v01 among them; nothing is created or deleted on this cloud until you have looked and run: kubectl annotate …",
	}}
	return c
}

// fakeOperator serves the VMs that the brake of Cloud west affects.
func fakeOperator(t *testing.T, vms int) string {
	t.Helper()
	missing := wire.Missing{Count: vms}
	for i := range min(vms, 10) {
		missing.VMs = append(missing.VMs, wire.MissingVM{Namespace: "team-a", Name: fmt.Sprintf("web-%d", i), ID: fmt.Sprintf("v%02d", i)})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wire.CloudsPath+"west" {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(wire.Error{Reason: wire.NotFound, Message: "Cloud does not exist"})
			return
		}
		_ = json.NewEncoder(w).Encode(wire.Cloud{Cloud: "west", Braked: true, Missing: &missing})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestBrakeListsTheVMsWhoseServersAreMissing(t *testing.T) {
	s := plugintest.Setup{Client: plugintest.NewClient(t, cloud("west", snapshot), cloud("other", snapshot))}
	plugintest.Golden(t, "missing", []plugintest.Result{
		s.Run(t.Context(), "brake", "west", "--operator-url", fakeOperator(t, 12)),
		s.Run(t.Context(), "brake", "west", "-o", "json", "--operator-url", fakeOperator(t, 2)),
		s.Run(t.Context(), "brake", "other", "--operator-url", fakeOperator(t, 2)),
	}, snapshot, "<snapshot>")
}

func TestBrakeShowsClouds(t *testing.T) {
	operator := "--operator-url=" + fakeOperator(t, 0)
	s := plugintest.Setup{Client: plugintest.NewClient(t, cloud("east", ""), cloud("west", snapshot), &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "new"}})}
	plugintest.Golden(t, "show", []plugintest.Result{
		s.Run(t.Context(), "brake", operator),
		s.Run(t.Context(), "brake", "east"),
		s.Run(t.Context(), "brake", "west", "-o", "json", operator),
		s.Run(t.Context(), "brake", "wset"),
		s.Run(t.Context(), "brake", "east", "-o", "yaml"),
		s.Run(t.Context(), "brake", "east", "west"),
	}, snapshot, "<snapshot>")
}
