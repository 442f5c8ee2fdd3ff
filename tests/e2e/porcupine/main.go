// A second opinion: Porcupine judges histories of registers, compare-and-set registers and mutexes.
//
// Standard input: a line of JSON per history, {"mutex": bool, "operations": [...]}. Standard output: "ok" or "illegal" for
// each. An operation of unknown outcome may have happened at any time after its call, or not at all; it is given a
// return after all others, and a step that is always legal: where it would change nothing it did not happen.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Client  int    `json:"client"`
	Call    int64  `json:"call"`
	Return  int64  `json:"return"`
	F       string `json:"f"`
	Old     int    `json:"old"`
	New     int    `json:"new"`
	Read    int    `json:"read"`
	Unknown bool   `json:"unknown"`
}

type history struct {
	Mutex      bool        `json:"mutex"`
	Operations []operation `json:"operations"`
}

// Nothing is what a register holds before it is written to. A mutex holds 1 while it is taken.
const nothing = -1

func step(state, input, _ interface{}) (bool, interface{}) {
	value, op := state.(int), input.(operation)
	switch op.F {
	case "write":
		return true, op.New
	case "read":
		return op.Unknown || op.Read == value, value
	case "cas":
		if value == op.Old {
			return true, op.New
		}
		return op.Unknown, value
	case "acquire":
		if value == 0 {
			return true, 1
		}
		return op.Unknown, value
	case "release":
		if value == 1 {
			return true, 0
		}
		return op.Unknown, value
	}
	panic("no such function: " + op.F)
}

func judge(one history) string {
	model := porcupine.Model{
		Init: func() interface{} {
			if one.Mutex {
				return 0
			}
			return nothing
		},
		Step: step,
	}
	operations := []porcupine.Operation{}
	for _, op := range one.Operations {
		end := op.Return
		if op.Unknown {
			end = math.MaxInt64
		}
		operations = append(operations, porcupine.Operation{
			ClientId: op.Client, Input: op, Call: op.Call, Output: 0, Return: end,
		})
	}
	if porcupine.CheckOperations(model, operations) {
		return "ok"
	}
	return "illegal"
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var one history
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			panic(err)
		}
		fmt.Println(judge(one))
	}
}
