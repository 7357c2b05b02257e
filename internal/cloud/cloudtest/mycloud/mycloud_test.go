package mycloud_test

import (
	"context"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/cloud/rest"
)

func TestMyCloud(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Fixture {
		client, err := rest.New(rest.Config{
			Name:        "mine",
			Endpoint:    startMyCloud(t), // empty, and for this subtest alone
			Credentials: rest.Credentials{Token: "of-the-test"},
			Limits:      rest.Limits{RequestsPerSecond: 1000, Burst: 1000, MaxInFlight: 32},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close(context.Background()) })
		return cloudtest.Fixture{
			Client:     client,
			Has:        cloud.NewCapabilities(cloud.Sizing, cloud.Labels, cloud.Power, cloud.PowerAtCreate),
			Prohibited: "forbidden",
		}
	})
}
