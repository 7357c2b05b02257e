// Package cloudtest holds the suite that every implementation of cloud.Client
// must pass, given what its cloud can do.
//
//	suite.go        Run, Fixture and what the tests share
//	probe.go        capabilities and names
//	life.go         create, get, list, delete
//	once.go         idempotency keys, unique names, lost answers
//	list.go         paging and label filters
//	change.go       power, size, labels
//	networks.go     networks: their life, keys and names, lost answers
//	refuse.go       what a cloud cannot do is refused without being sent
package cloudtest
