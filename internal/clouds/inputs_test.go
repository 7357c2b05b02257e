package clouds

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// TestEveryFieldOfTheSpecReplacesTheClient holds that a field which is added to
// the spec, or to the block of a type, replaces the client unless it is listed.
func TestEveryFieldOfTheSpecReplacesTheClient(t *testing.T) {
	// The data of the Secret counts, not the name that it is found by.
	unrelated := []string{"credentialsSecretRef", "pollInterval", "settleTime", "utilizationStep", "orphanPolicy", "allowedNamespaces", "imports", "importable", "networkImports", "importableNetworks"}
	fields := leaves("", reflect.TypeFor[pcapi.CloudSpec]())
	if got := slices.Sorted(maps.Keys(fields)); !slices.Contains(got, "rest.uniqueNames") || !slices.Contains(got, "limits.burst") {
		t.Fatalf("found only the fields %v", got)
	}
	for name, set := range fields {
		t.Run(name, func(t *testing.T) {
			before, after := home(), home()
			set(reflect.ValueOf(&after.Spec).Elem())
			if cmp.Equal(before, after) {
				t.Fatal("the field was not changed")
			}
			top, _, _ := strings.Cut(name, ".")
			want := !slices.Contains(unrelated, top)
			if got := mustFingerprint(t, before) != mustFingerprint(t, after); got != want {
				t.Errorf("a new client is made: %t, want %t", got, want)
			}
			// Only the credentials and the limits may change beside a client in use.
			want = want && top != "limits"
			if got := mustIdentity(t, before) != mustIdentity(t, after); got != want {
				t.Errorf("the client in use is closed at once: %t, want %t", got, want)
			}
		})
	}
}

func mustFingerprint(t *testing.T, c *pcapi.Cloud) fingerprint {
	t.Helper()
	sum, err := fingerprintOf(c, nil)
	if err != nil {
		t.Fatalf("fingerprintOf: %v", err)
	}
	return sum
}

func mustIdentity(t *testing.T, c *pcapi.Cloud) fingerprint {
	t.Helper()
	sum, err := identityOf(c)
	if err != nil {
		t.Fatalf("identityOf: %v", err)
	}
	return sum
}

// leaves returns, by its name in JSON, a function for each field of a struct
// that changes this field of a struct of the type.
func leaves(parent string, of reflect.Type) map[string]func(reflect.Value) {
	found := map[string]func(reflect.Value){}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		name, inside := parent+name, func(v reflect.Value) reflect.Value { return v.FieldByIndex(field.Index) }
		kind := field.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
			inside = func(v reflect.Value) reflect.Value {
				v = v.FieldByIndex(field.Index)
				if v.IsNil() {
					v.Set(reflect.New(kind))
				}
				return v.Elem()
			}
		}
		if kind.Kind() != reflect.Struct || kind.PkgPath() != of.PkgPath() {
			found[name] = func(v reflect.Value) { change(inside(v)) }
			continue
		}
		for deeper, set := range leaves(name+".", kind) {
			found[deeper] = func(v reflect.Value) { set(inside(v)) }
		}
	}
	return found
}

// change gives v another value. Structs of other packages count as one value: a
// pointer to one was nil before.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case reflect.Struct:
		if field := v.Field(0); field.Kind() == reflect.Int64 {
			change(field)
		}
	default:
		panic("no other value for a " + v.Kind().String())
	}
}

const unlabelled = `Secret "login" in namespace "operator" is not for this Cloud: ` +
	`give it the label samplecontroller.k8s.io/credentials-for=home to allow that its data is sent to spec.endpoint`

// labelled returns the Secret that withSecret refers to, with these labels alone.
func labelled(labels map[string]string) *corev1.Secret {
	secret := secretOf(map[string]string{"token": "t"})
	secret.Labels = labels
	return secret
}

func TestGetReadsTheSecretThatTheSpecNames(t *testing.T) {
	errAway := errors.New("the API server is away")
	tests := []struct {
		name   string
		cloud  *pcapi.Cloud
		secret *corev1.Secret
		unread error
		reason string
		says   string
	}{
		{name: "no Secret is named: none is read", cloud: home(), unread: errAway},
		{
			name: "the Secret does not exist: the message names the keys of this type", cloud: home(withSecret), reason: pcapi.SecretMissingReason,
			says: `Secret "login" does not exist in namespace "operator": create it with a key of the cloud in memory, and with the label samplecontroller.k8s.io/credentials-for=home`,
		},
		{
			name: "the Secret cannot be read: the error is not the user's", cloud: home(withSecret), unread: errAway,
			says: `read Secret "login" in namespace "operator": the API server is away`,
		},
		{name: "the Secret is for this Cloud: used", cloud: home(withSecret), secret: secretOf(map[string]string{"token": "t"})},
		{
			name: "the Secret has no label: not used", cloud: home(withSecret), secret: labelled(nil), reason: pcapi.InvalidConfigurationReason, says: unlabelled,
		},
		{
			name: "the Secret is for another Cloud: not used", cloud: home(withSecret), reason: pcapi.InvalidConfigurationReason, says: unlabelled,
			secret: labelled(map[string]string{pcapi.CredentialsForLabel: "other"}),
		},
		{
			name: "the Secret has an empty label: not used", cloud: home(withSecret), reason: pcapi.InvalidConfigurationReason, says: unlabelled,
			secret: labelled(map[string]string{pcapi.CredentialsForLabel: ""}),
		},
		{
			name: "the type is not served: the message names those that are", cloud: home(withSecret, func(c *pcapi.Cloud) { c.Spec.Type = "VSphere" }),
			reason: pcapi.InvalidConfigurationReason, says: `spec.type "VSphere" is not served by this operator: choose one of InMemory, REST`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t)
			if tc.secret != nil {
				h = newHarness(t, tc.secret)
			}
			h.unreadable = tc.unread
			got, err := h.Get(t.Context(), tc.cloud)
			if len(h.dialed) > 0 && tc.says != "" {
				t.Error("the data of the Secret is used")
			}
			if (got == nil) != (tc.says != "") {
				t.Errorf("client: %v", got)
			}
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.says, message); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if got := reasonOf(err); got != tc.reason {
				t.Errorf("reason %q, want %q", got, tc.reason)
			}
		})
	}
}

func TestDialFuncIsADialer(t *testing.T) {
	want := newClient()
	var d Dialer = DialFunc(func(c *pcapi.Cloud, secret *corev1.Secret) (cloud.Client, error) {
		if c.Name != "home" || string(secret.Data["token"]) != "t" {
			t.Errorf("dialed Cloud %q with %v", c.Name, secret.Data)
		}
		return want, nil
	})
	h := newHarness(t, secretOf(map[string]string{"token": "t"}))
	h.opts.Dialers[memoryType] = d
	if got := h.get(home(withSecret)); got != want {
		t.Errorf("client %v, want that of the function", got)
	}
	h.Forget(t.Context(), "another")
}
