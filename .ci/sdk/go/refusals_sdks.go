package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
)

// holdTokens takes longer to write than anything here.
const holdTokens = 20_000

type openaiSDK struct{}

func (openaiSDK) client(c *refusedCall) openai.Client {
	options := []openaioption.RequestOption{openaioption.WithBaseURL(c.url + "/v1/"), openaioption.WithAPIKey(c.secret),
		openaioption.WithRequestTimeout(time.Minute), openaioption.WithHeader("X-Weir-Run", c.Run), openaioption.WithMiddleware(c.watch)}
	if !c.retries {
		options = append(options, openaioption.WithMaxRetries(0))
	}
	return openai.NewClient(options...)
}

// failed keeps an error of the API, and returns any other.
func (openaiSDK) failed(c *refusedCall, err error) error {
	e, ok := errors.AsType[*openai.Error](err)
	if !ok {
		return err
	}
	c.Error = []any{fmt.Sprintf("%T", e), e.StatusCode, e.Code, e.Message}
	return nil
}

func (s openaiSDK) call(c *refusedCall, a ask) error {
	client, p := s.client(c), chat()
	p.Model, p.MaxTokens = a.model, openai.Int(a.maxTokens)
	if !a.stream {
		answer, err := client.Chat.Completions.New(context.Background(), p)
		if err != nil {
			return s.failed(c, err)
		}
		c.Text = answer.Choices[0].Message.Content
		c.usage(answer.Usage.PromptTokens, answer.Usage.CompletionTokens)
		return nil
	}
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(context.Background(), p)
	defer stream.Close()
	for stream.Next() {
		chunk := stream.Current()
		for _, choice := range chunk.Choices {
			c.Text += choice.Delta.Content
		}
		if chunk.JSON.Usage.Valid() {
			c.usage(chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens)
		}
	}
	return s.failed(c, stream.Err())
}

func (s openaiSDK) models(c *refusedCall) error {
	client := s.client(c)
	_, err := client.Models.List(context.Background())
	return s.failed(c, err)
}

func (s openaiSDK) hold(c *refusedCall) (func() error, error) {
	client, p := s.client(c), chat()
	p.MaxTokens = openai.Int(holdTokens)
	stream := client.Chat.Completions.NewStreaming(context.Background(), p)
	if !stream.Next() {
		return nil, fmt.Errorf("the queue's place was not to be had: %w", stream.Err())
	}
	return stream.Close, nil
}

type anthropicSDK struct{}

func (anthropicSDK) client(c *refusedCall) anthropic.Client {
	options := []anthropicoption.RequestOption{anthropicoption.WithBaseURL(c.url), anthropicoption.WithAPIKey(c.secret),
		anthropicoption.WithRequestTimeout(time.Minute), anthropicoption.WithHeader("X-Weir-Run", c.Run), anthropicoption.WithMiddleware(c.watch)}
	if !c.retries {
		options = append(options, anthropicoption.WithMaxRetries(0))
	}
	return anthropic.NewClient(options...)
}

// failed keeps an error of the API, and returns any other.
func (anthropicSDK) failed(c *refusedCall, err error) error {
	e, ok := errors.AsType[*anthropic.Error](err)
	if !ok {
		return err
	}
	var body struct {
		Error struct{ Message string }
	}
	if err := json.Unmarshal([]byte(e.RawJSON()), &body); err != nil {
		return fmt.Errorf("read the error: %w", err)
	}
	c.Error = []any{fmt.Sprintf("%T", e), e.StatusCode, string(e.Type()), body.Error.Message}
	return nil
}

func (s anthropicSDK) call(c *refusedCall, a ask) error {
	client, p := s.client(c), turn(a.maxTokens)
	p.Model = a.model
	var message anthropic.Message
	if a.stream {
		stream := client.Messages.NewStreaming(context.Background(), p)
		defer stream.Close()
		for stream.Next() {
			if err := message.Accumulate(stream.Current()); err != nil {
				return err
			}
		}
		if err := stream.Err(); err != nil {
			return s.failed(c, err)
		}
	} else {
		answer, err := client.Messages.New(context.Background(), p)
		if err != nil {
			return s.failed(c, err)
		}
		message = *answer
	}
	for _, block := range message.Content {
		c.Text += block.Text
	}
	u := message.Usage
	c.usage(u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens, u.OutputTokens)
	return nil
}

func (s anthropicSDK) models(c *refusedCall) error {
	client := s.client(c)
	_, err := client.Models.List(context.Background(), anthropic.ModelListParams{})
	return s.failed(c, err)
}

func (s anthropicSDK) hold(c *refusedCall) (func() error, error) {
	client := s.client(c)
	stream := client.Messages.NewStreaming(context.Background(), turn(holdTokens))
	if !stream.Next() {
		return nil, fmt.Errorf("the queue's place was not to be had: %w", stream.Err())
	}
	return stream.Close, nil
}
