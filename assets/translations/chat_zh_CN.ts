<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>chat</name>
    <message>
        <source>Copy the code</source>
        <translation>复制代码</translation>
    </message>
    <message>
        <source>Copy the link</source>
        <translation>复制链接</translation>
    </message>
    <message>
        <source>Copy the answer</source>
        <translation>复制回答</translation>
    </message>
    <message>
        <source>Select all</source>
        <translation>全选</translation>
    </message>
    <message>
        <source>Your message</source>
        <translation>您的消息</translation>
    </message>
    <message>
        <source>Show all of it</source>
        <translation>显示全部</translation>
    </message>
    <message>
        <source>Show less</source>
        <translation>收起</translation>
    </message>
    <message>
        <source>Edit and send again</source>
        <translation>修改后重新发送</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>重新回答</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Go to the end</source>
        <translation>跳到末尾</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>Write a message…</source>
        <translation>输入消息…</translation>
    </message>
    <message>
        <source>Enter sends, Shift+Enter starts a new line</source>
        <translation>按 Enter 发送，按 Shift+Enter 换行</translation>
    </message>
    <message>
        <source>You are changing an earlier message. Sending it replaces all that followed.</source>
        <translation>正在修改之前的消息。发送后，它之后的内容都会被替换。</translation>
    </message>
    <message>
        <source>Leave the earlier message as it is</source>
        <translation>不修改之前的消息</translation>
    </message>
    <message>
        <source>Add a text file</source>
        <translation>添加文本文件</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>发送</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>移除 {name}</translation>
    </message>
    <message>
        <source>{name} has {size}; the limit is {limit}. Add a part of it.</source>
        <translation>{name} 有 {size}，上限为 {limit}。请只添加其中一部分。</translation>
    </message>
    <message>
        <source>{name} is no text in UTF-8. Save it as UTF-8 text and add it again.</source>
        <translation>{name} 不是 UTF-8 文本。请另存为 UTF-8 文本后再添加。</translation>
    </message>
    <message>
        <source>{name} cannot be read: {reason}.</source>
        <translation>无法读取 {name}：{reason}。</translation>
    </message>
    <message>
        <source>{name} is empty.</source>
        <translation>{name} 是空文件。</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>Search conversations and answers</source>
        <translation>搜索对话和回答</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>对话列表</translation>
    </message>
    <message>
        <source>Nothing was found.</source>
        <translation>没有找到匹配的内容。</translation>
    </message>
    <message>
        <source>Your conversations will be listed here.</source>
        <translation>您的对话会显示在这里。</translation>
    </message>
    <message>
        <source>Untitled</source>
        <translation>未命名</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>重命名</translation>
    </message>
    <message>
        <source>Export as Markdown…</source>
        <translation>导出为 Markdown…</translation>
    </message>
    <message>
        <source>Export as JSON…</source>
        <translation>导出为 JSON…</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>删除…</translation>
    </message>
    <message>
        <source>How should it answer? For example: short, in simple words, as a teacher.</source>
        <translation>希望它怎样回答？例如：简短、通俗易懂、像老师一样。</translation>
    </message>
    <message>
        <source>Instructions</source>
        <translation>指令</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>0 always takes the likeliest word; more is freer.</source>
        <translation>0 表示总选可能性最大的词；数值越大，表达越自由。</translation>
    </message>
    <message>
        <source>Leaves out the unlikeliest words; 1 leaves out none.</source>
        <translation>排除可能性最小的词；1 表示不排除。</translation>
    </message>
    <message>
        <source>Only so many words are in question; 0 is without a limit.</source>
        <translation>只考虑可能性最大的若干个词；0 表示不限。</translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation>回答长度上限</translation>
    </message>
    <message>
        <source>In tokens; 0 is as long as the context allows.</source>
        <translation>以词元计；0 表示上下文允许的最大长度。</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>随机种子</translation>
    </message>
    <message>
        <source>The same seed gives the same answer to the same conversation.</source>
        <translation>相同的种子，对相同的对话给出相同的回答。</translation>
    </message>
    <message>
        <source>random</source>
        <translation>随机</translation>
    </message>
    <message>
        <source>as needed</source>
        <translation>按需</translation>
    </message>
    <message>
        <source>Back to the usual</source>
        <translation>恢复默认</translation>
    </message>
    <message>
        <source>Close the panel</source>
        <translation>关闭面板</translation>
    </message>
    <message>
        <source>This conversation</source>
        <translation>当前对话</translation>
    </message>
    <message>
        <source>Changes hold from the next answer on.</source>
        <translation>更改从下一次回答起生效。</translation>
    </message>
    <message>
        <source>What is it about?</source>
        <translation>今天想聊点什么？</translation>
    </message>
    <message>
        <source>The model runs on this computer. What you write here does not leave it.</source>
        <translation>模型在本机运行，您写的内容不会离开本机。</translation>
    </message>
    <message>
        <source>Explain something</source>
        <translation>解释概念</translation>
    </message>
    <message>
        <source>Explain in simple words: </source>
        <translation>请用通俗的话解释：</translation>
    </message>
    <message>
        <source>Draft an e-mail</source>
        <translation>起草邮件</translation>
    </message>
    <message>
        <source>Write a short, friendly e-mail. It is about: </source>
        <translation>写一封简短、友好的邮件，内容是：</translation>
    </message>
    <message>
        <source>Write some code</source>
        <translation>编写代码</translation>
    </message>
    <message>
        <source>Write a Python function that </source>
        <translation>写一个 Python 函数，功能是：</translation>
    </message>
    <message>
        <source>Compare two things</source>
        <translation>比较两样东西</translation>
    </message>
    <message>
        <source>Compare these two in a table: </source>
        <translation>用表格比较这两样东西：</translation>
    </message>
    <message>
        <source>Enter sends, Shift+Enter starts a new line. A text file can be dropped here and asked about.</source>
        <translation>按 Enter 发送，按 Shift+Enter 换行。也可以把文本文件拖到这里，就其内容提问。</translation>
    </message>
    <message>
        <source>Show or hide the conversations</source>
        <translation>显示或隐藏对话列表</translation>
    </message>
    <message>
        <source>Instructions and sampling of this conversation</source>
        <translation>当前对话的指令与采样参数</translation>
    </message>
    <message>
        <source>More</source>
        <translation>更多</translation>
    </message>
    <message>
        <source>Export the conversation</source>
        <translation>导出对话</translation>
    </message>
    <message>
        <source>You</source>
        <translation>我</translation>
    </message>
    <message>
        <source>Assistant</source>
        <translation>助手</translation>
    </message>
    <message>
        <source>{file} cannot be written: {reason}.</source>
        <translation>无法写入 {file}：{reason}。</translation>
    </message>
    <message>
        <source>Delete “{title}”?</source>
        <translation>删除“{title}”？</translation>
    </message>
    <message>
        <source>It cannot be brought back.</source>
        <translation>删除后无法恢复。</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>{used} / {context} tokens</source>
        <translation>{used} / {context} 词元</translation>
    </message>
    <message>
        <source>The conversation and this message, out of what the model can hold together with its answer</source>
        <translation>对话与这条消息占用的词元数 / 模型可容纳的总数（含回答）</translation>
    </message>
    <message>
        <source>The model no longer sees the oldest {count} messages: its context is full.</source>
        <translation>上下文已满，模型看不到最早的 {count} 条消息。</translation>
    </message>
    <message>
        <source>Open the chat</source>
        <translation>打开聊天窗口</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Top-k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>Search to find older ones.</source>
        <translation>更早的回答可通过搜索找到。</translation>
    </message>
    <message>
        <source>Continue as chat</source>
        <translation>继续对话</translation>
    </message>
</context>
</TS>
