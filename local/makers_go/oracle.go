package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const askSeconds = 30

// A row is one partition that a group has a commit for, as franz-go's admin client reads it.
type row struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed int64  `json:"committed"`
	LogEnd    int64  `json:"logEnd"`
	Lag       int64  `json:"lag"`
}

// printLags writes a JSON list of the rows of these groups.
func printLags(to io.Writer, servers, groups []string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...))
	if err != nil {
		return err
	}
	defer client.Close()
	limit, cancel := context.WithTimeout(context.Background(), askSeconds*time.Second)
	defer cancel()
	rows, err := rowsOf(limit, kadm.NewClient(client), groups)
	if err != nil {
		return err
	}
	return json.NewEncoder(to).Encode(rows)
}

func rowsOf(limit context.Context, admin *kadm.Client, groups []string) ([]row, error) {
	rows := []row{}
	lags, err := admin.Lag(limit, groups...)
	if err != nil {
		return nil, err
	}
	if err := lags.Error(); err != nil {
		return nil, err
	}
	for _, group := range lags.Sorted() {
		for _, lag := range group.Lag.Sorted() {
			if lag.Err != nil {
				return nil, fmt.Errorf("%s/%d: %w", lag.Topic, lag.Partition, lag.Err)
			}
			rows = append(rows, row{group.Group, lag.Topic, lag.Partition, lag.Commit.At, lag.End.Offset, lag.Lag})
		}
	}
	return rows, nil
}
