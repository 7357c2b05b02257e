package setup

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/clouds/openstackdialer"
	"github.com/privatecloud/operator/internal/clouds/restdialer"
	"github.com/privatecloud/operator/internal/clouds/vspheredialer"
	"github.com/privatecloud/operator/internal/tenancy"
)

func TestManagerOfAPartOfTheCloudsIsNeverAlone(t *testing.T) {
	part, err := tenancy.ParseScope("shard=east")
	if err != nil {
		t.Fatal(err)
	}
	leader := func() bool { return true }
	if (Options{Alone: leader, Scope: part}).alone() != nil {
		t.Error("a manager that another lease does not stop counts as alone")
	}
	if alone := (Options{Alone: leader}).alone(); alone == nil || !alone() {
		t.Error("the leader of a manager with all Clouds is not alone")
	}
}

func TestDialersServeRESTAndThoseOfTheOptions(t *testing.T) {
	errMemory := errors.New("dialed in memory")
	memory := clouds.DialFunc(func(*pcapi.Cloud, *corev1.Secret) (cloud.Client, error) { return nil, errMemory })
	tests := map[string]struct {
		added      map[pcapi.CloudType]clouds.Dialer
		rest       bool
		fromMemory pcapi.CloudType
	}{
		"no options: REST alone":                 {rest: true},
		"another type: served besides REST":      {added: map[pcapi.CloudType]clouds.Dialer{"InMemory": memory}, rest: true, fromMemory: "InMemory"},
		"type REST: the options' Dialer is used": {added: map[pcapi.CloudType]clouds.Dialer{pcapi.CloudTypeREST: memory}, fromMemory: pcapi.CloudTypeREST},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := dialers(Options{Dialers: tc.added})
			if _, rest := got[pcapi.CloudTypeREST].(restdialer.Dialer); rest != tc.rest {
				t.Errorf("type REST is served by %T", got[pcapi.CloudTypeREST])
			}
			if _, vsphere := got[pcapi.CloudTypeVSphere].(vspheredialer.Dialer); !vsphere {
				t.Errorf("type VSphere is served by %T", got[pcapi.CloudTypeVSphere])
			}
			if _, served := got[pcapi.CloudTypeOpenStack].(openstackdialer.Dialer); !served {
				t.Errorf("type OpenStack is served by %T", got[pcapi.CloudTypeOpenStack])
			}
			if tc.fromMemory == "" {
				return
			}
			if _, err := got[tc.fromMemory].Dial(nil, nil); !errors.Is(err, errMemory) {
				t.Errorf("type %s: Dial ended with %v, want the options' Dialer", tc.fromMemory, err)
			}
		})
	}
}
