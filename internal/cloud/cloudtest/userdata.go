package cloudtest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

var withUserData = []cloud.Capability{cloud.WithUserData}

var userDataCases = []testCase{
	{name: "user data: the server has it as it was sent", needs: withUserData, data: true,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			// All bytes, and text that is base64 itself.
			for what, data := range map[string]cloud.UserData{"bytes": everyByte(), "base64": cloud.UserData("I2Nsb3VkLWNvbmZpZwo=")} {
				created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("booted"), UserData: data})
				if !f.HasUserData(t, created.ID, data) {
					t.Errorf("%s: the server has other user data than was sent", what)
				}
			}
		}},
	{name: "user data, with the key of a create with other user data: the same server", needs: append(withUserData, cloud.Idempotency),
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := cloud.CreateServer{Name: name("rotated"), IdempotencyKey: name("key"), UserData: cloud.UserData("#cloud-config\n")}
			first := mustCreate(ctx, t, f, req)
			req.UserData = cloud.UserData("#cloud-config\nlocale: C\n")
			sameServer(t, "second CreateServer", first, mustCreate(ctx, t, f, req))
			wantServers(ctx, t, f, first.ID)
		}},
	{name: "user data that is too large: Rejected, and no server", needs: withUserData,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			_, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("large"), UserData: incompressible(1 << 18)})
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
}

func everyByte() cloud.UserData {
	var all bytes.Buffer
	for b := range 256 {
		all.WriteByte(byte(b))
	}
	return all.Bytes()
}

// incompressible returns size bytes that take as many when they are compressed.
func incompressible(size int) cloud.UserData {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	return data
}
