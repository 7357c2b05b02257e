package setup

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/clouds/restdialer"
)

func TestDialersServeRESTAndThoseOfTheOptions(t *testing.T) {
	errMemory := errors.New("dialed in memory")
	memory := clouds.DialFunc(func(*v1alpha1.Cloud, *corev1.Secret) (cloud.Client, error) { return nil, errMemory })
	tests := map[string]struct {
		added      map[v1alpha1.CloudType]clouds.Dialer
		rest       bool
		fromMemory v1alpha1.CloudType
	}{
		"no options: REST alone":                 {rest: true},
		"another type: served besides REST":      {added: map[v1alpha1.CloudType]clouds.Dialer{"InMemory": memory}, rest: true, fromMemory: "InMemory"},
		"type REST: the options' Dialer is used": {added: map[v1alpha1.CloudType]clouds.Dialer{v1alpha1.CloudTypeREST: memory}, fromMemory: v1alpha1.CloudTypeREST},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := dialers(Options{Dialers: tc.added})
			if _, rest := got[v1alpha1.CloudTypeREST].(restdialer.Dialer); rest != tc.rest {
				t.Errorf("type REST is served by %T", got[v1alpha1.CloudTypeREST])
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
