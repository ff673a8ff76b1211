// librabbitmq, used as a codec only: amqp_handle_input and amqp_encode_* on our own socket.
#pragma once
#include <amqp.h>
#include <amqp_framing.h>
