// refused by: the_configuration_has_no_field_of_this_name() [with auto fields = Printed<62>{"lr, width, layer.width, layer.dropout, widths, table, layer"}]
#include <troupe/tune.hpp>

#include "searched.hpp"

int main() {
  tune::run<trains>({.space = {{"lrr", tune::uniform(0, 1)}}, .trials = 3, .metric = "loss"});
}
