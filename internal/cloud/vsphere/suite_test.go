package vsphere_test

import (
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
)

var all = cloud.NewCapabilities(
	cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.FolderNames, cloud.BulkStatus, cloud.Power, cloud.PowerAtCreate,
	cloud.Resize, cloud.Folders, cloud.Hosts, cloud.Sessions, cloud.Sizing, cloud.Operations,
)

func TestClientPassesTheSuite(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Fixture {
		t.Helper()
		v := newVCenter(t)
		methods := map[cloudtest.Op][]string{
			cloudtest.OpCreateServer: {"CloneVM_Task"}, cloudtest.OpDeleteServer: {"Destroy_Task"},
			cloudtest.OpUpdateServer: {"ReconfigVM_Task", "PowerOffVM_Task", "PowerOnVM_Task"},
		}
		return cloudtest.Fixture{
			Client: v.client(t), Has: all, Prohibited: longName(), Codes: true, Filters: true,
			Names: []string{
				"plain", "..", ".", "a?b=c", "a#b", "a b", "a+b", "a&b;c=d", "a:b@c", "сервер", "服务器", "خادم", "máquina", "🖥", `quo"te`, "{id}",
			},
			Sent:      func() int { return v.front.sent("") },
			Hosts:     []cloud.Host{{Name: "DC0_C0_H0"}, {Name: "DC0_C0_H1"}, {Name: "DC0_C0_H2"}},
			Operating: func(*testing.T, bool) {}, // every change is a task
			FailOperations: func(*testing.T) func() {
				return v.front.failClones()
			},
			LoseAnswer: func(_ *testing.T, op cloudtest.Op) func() { return v.front.lose(methods[op]...) },
		}
	})
}
