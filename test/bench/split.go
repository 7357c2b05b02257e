package main

import (
	"context"
	"errors"
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// eastCloud is the Cloud of the second manager of a split, and eastLabel its label.
const eastCloud, eastLabel = "east", "shard"

// splits measures the rate of one manager with two Clouds, alternating with two managers
// that have one of them each.
func splits(ctx context.Context, s *stage) ([]row, error) {
	if err := s.pollEvery(ctx, ratePoll); err != nil {
		return nil, err
	}
	if err := s.cloud.behave(ctx, 0, 0); err != nil {
		return nil, err
	}
	at, err := startMock(ctx, s.options, s.folder, "mockcloud-east")
	if err != nil {
		return nil, err
	}
	s.others = append(s.others, at)
	defer func() { s.others = nil }()
	east := newCloud(eastCloud, at)
	east.Labels = map[string]string{eastLabel: eastCloud}
	east.Spec.PollInterval.Duration = ratePoll
	if err := s.client.Create(ctx, east); err != nil {
		return nil, errors.Join(fmt.Errorf("creating Cloud %s: %w", eastCloud, err), at.stop())
	}
	rows, err := s.splitRounds(ctx)
	if err == nil {
		err = s.dropCloud(ctx, east)
	}
	return rows, errors.Join(err, at.stop())
}

// dropCloud deletes a Cloud, for which an operator must run.
func (s *stage) dropCloud(ctx context.Context, of *pcapi.Cloud) error {
	m, err := s.startManager(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.deleteCloud(ctx, of), m.stop())
}

func (s *stage) splitRounds(ctx context.Context) ([]row, error) {
	n := s.options.vms
	var one, two []round
	for i := range s.options.rounds {
		say("round %d of %d: %d VMs on two Clouds, by one manager and by two", i+1, s.options.rounds, n)
		r, err := s.splitRound(ctx, fmt.Sprintf("whole%d", i), nil)
		if err != nil {
			return nil, fmt.Errorf("one manager, round %d: %w", i+1, err)
		}
		one = append(one, r)
		r, err = s.splitRound(ctx, fmt.Sprintf("split%d", i),
			[]string{"--cloud-selector=" + eastLabel + "!=" + eastCloud}, []string{"--cloud-selector=" + eastLabel + "=" + eastCloud})
		if err != nil {
			return nil, fmt.Errorf("two managers, round %d: %w", i+1, err)
		}
		two = append(two, r)
		say("  one manager %.0f VM/s, two %.0f VM/s", one[i].rate(n), two[i].rate(n))
	}
	return splitRows(n, one, two), nil
}

// splitRound creates VMs on two Clouds with one manager for each list of arguments.
func (s *stage) splitRound(ctx context.Context, prefix string, lists ...[]string) (round, error) {
	managers, err := s.startManagers(ctx, lists...)
	if err != nil {
		return round{}, err
	}
	return s.managersRound(ctx, managers, prefix, s.options.vms, pcapi.DefaultCloudName, eastCloud)
}

func splitRows(n int, one, two []round) []row {
	var whole, halves, shares, byCPU []float64
	for i := range one {
		whole, halves = append(whole, one[i].rate(n)), append(halves, two[i].rate(n))
		shares = append(shares, halves[i]/whole[i])
		byCPU = append(byCPU, one[i].total().Seconds()/two[i].total().Seconds())
	}
	share := spread(shares)
	return []row{
		heading(fmt.Sprintf("%d VMs created at once on two Clouds, until all are Ready", n)),
		info("one manager", rateText(whole), roundText(n, one)),
		info("two managers with a Cloud each", rateText(halves), roundText(n, two)),
		info("rate of two managers against that of one", percent(share.median),
			fmt.Sprintf("%s to %s, each round against the one before it", percent(share.least), percent(share.most))),
		byCPURow(byCPU),
	}
}
