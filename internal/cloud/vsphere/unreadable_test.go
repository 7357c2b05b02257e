package vsphere_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
)

// incomplete returns an answer with one VM that lacks a property because of a fault.
func incomplete(method, vm, path, fault string, props ...string) (status int, body string) {
	var has strings.Builder
	for i := 0; i < len(props); i += 2 {
		fmt.Fprintf(&has, `<propSet><name>%s</name><val xsi:type="xsd:string">%s</val></propSet>`, props[i], props[i+1])
	}
	return http.StatusOK, envelope(fmt.Sprintf(`<%[1]sResponse xmlns="urn:vim25"><returnval><objects><obj type="VirtualMachine">%[2]s</obj>%[3]s<missingSet>`+
		`<path>%[4]s</path><fault>%[5]s<localizedMessage/></fault></missingSet></objects></returnval></%[1]sResponse>`, method, vm, has.String(), path, fault))
}

// noPermission, ended and deleted are faults of a property.
const (
	noPermission = `<fault xsi:type="NoPermission"><object type="VirtualMachine">vm-1</object><privilegeId>System.Read</privilegeId></fault>`
	ended        = `<fault xsi:type="NotAuthenticated"><object type="VirtualMachine">vm-1</object><privilegeId>System.View</privilegeId></fault>`
)

func deleted(vm string) string {
	return `<fault xsi:type="ManagedObjectNotFound"><obj type="VirtualMachine">` + vm + `</obj></fault>`
}

func TestVMThatCannotBeReadIsNotMissingInAListing(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "db"})
	list(t, c)
	vm := v.VM("db").Self.Value
	for name, tc := range map[string]struct {
		path, fault string
		props       []string
		servers     int
		kind        cloud.Kind
	}{
		"its name is unreadable: fails":                     {"name", noPermission, []string{"config.instanceUuid", created.ID}, 0, cloud.Unavailable},
		"its id is unreadable, and known: is listed":        {"config.instanceUuid", noPermission, []string{"name", "db"}, 1, ""},
		"its id was never read: fails":                      {"config.instanceUuid", noPermission, []string{"name", "other"}, 0, cloud.Unavailable},
		"its name is absent, without a reason: fails":       {"config.createDate", noPermission, []string{"config.instanceUuid", created.ID}, 0, cloud.Unavailable},
		"it was deleted while it was read: is not listed":   {"name", deleted(vm), nil, 0, ""},
		"it has neither, and was never read: is not listed": {"config.createDate", noPermission, nil, 0, ""},
		"it has neither, and was read before: fails":        {"config.createDate", noPermission, nil, 0, cloud.Unavailable},
		"a property is unreadable that is none of the two":  {"config.createDate", noPermission, []string{"name", "db", "config.instanceUuid", created.ID}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ref := vm
			if strings.Contains(name, "never") {
				ref = "vm-99999"
			}
			defer v.Front.Answer(func(method string) (int, string) {
				if method == "RetrievePropertiesEx" {
					return incomplete(method, ref, tc.path, tc.fault, tc.props...)
				}
				return 0, ""
			})()
			page, err := c.ListServers(t.Context(), cloud.ListServers{})
			if tc.kind != "" {
				wantError(t, err, tc.kind, "does not return the name")
				return
			}
			if err != nil || len(page.Servers) != tc.servers {
				t.Fatalf("ListServers: %+v, %v; want %d servers", page.Servers, err, tc.servers)
			}
			for _, server := range page.Servers {
				if server.ID != created.ID || server.Name != "db" {
					t.Errorf("ListServers: %+v, want %s", server, created.ID)
				}
			}
		})
	}
}

func TestSessionThatEndsBetweenPagesProvesNothing(t *testing.T) {
	v := newVCenter(t)
	v.Front.LeaveStopped()
	c := v.client(t)
	for i := range 3 {
		create(t, c, cloud.CreateServer{Name: fmt.Sprintf("vm-%d", i)})
	}
	page, err := c.ListServers(t.Context(), cloud.ListServers{Limit: 2})
	if err != nil {
		t.Fatalf("ListServers: %v", err)
	}
	before, pages := v.Front.Sent("Login"), 0
	restore := v.Front.Answer(func(method string) (int, string) {
		if method != "ContinueRetrievePropertiesEx" {
			return 0, ""
		}
		pages++
		if pages > 1 {
			return 0, "" // the token is not that of the new session; the simulator accepts it
		}
		return incomplete(method, v.VM("vm-0").Self.Value, "name", ended)
	})
	defer restore()
	next, err := c.ListServers(t.Context(), cloud.ListServers{Limit: 2, Marker: page.Next})
	if err != nil || len(next.Servers) != 1 || v.Front.Sent("Login") != before+1 {
		t.Errorf("ListServers: %+v, %v after %d logins; want one server after another login", next.Servers, err, v.Front.Sent("Login")-before)
	}
}

func TestResultWithoutEndIsUnreadable(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	if _, err := c.Capabilities(t.Context()); err != nil {
		t.Fatal(err)
	}
	var many strings.Builder
	for n := range 2000 {
		fmt.Fprintf(&many, `<objects><obj type="HostSystem">host-%d</obj></objects>`, n)
	}
	for name, objects := range map[string]string{"empty pages": "", "many objects": many.String()} {
		t.Run(name, func(t *testing.T) {
			before := v.Front.Sent("ContinueRetrievePropertiesEx")
			defer v.Front.Answer(func(method string) (int, string) {
				if method != "RetrievePropertiesEx" && method != "ContinueRetrievePropertiesEx" {
					return 0, ""
				}
				return http.StatusOK, envelope(`<` + method + `Response xmlns="urn:vim25"><returnval><token>more</token>` + objects + `</returnval></` + method + `Response>`)
			})()
			_, err := c.ListHosts(t.Context())
			wantError(t, err, cloud.Unreadable, "more objects than the operator reads")
			if pages := v.Front.Sent("ContinueRetrievePropertiesEx") - before; pages > vsphere.MaxPages {
				t.Errorf("read %d pages", pages)
			}
		})
	}
}
